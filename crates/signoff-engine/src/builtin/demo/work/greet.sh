#!/bin/sh
# Says hello to one person.
name=$1
echo "Hello, $name!"
