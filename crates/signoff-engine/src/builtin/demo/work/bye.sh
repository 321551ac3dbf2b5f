#!/bin/sh
# Says goodbye to one person.
name=$1
if [ -z "$name" ]; then
    echo "usage: bye.sh NAME" >&2
    exit 2
fi
echo "Goodbye, $name!"
