#!/bin/sh
# Says hello to somebody.
name=$1
echo "Hello, $name!"
