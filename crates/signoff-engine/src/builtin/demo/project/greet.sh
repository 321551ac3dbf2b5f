#!/bin/sh
# Says hello.
echo "Hello!"
