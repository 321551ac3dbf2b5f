#!/bin/sh
# Checks greet.sh.
said=$(sh greet.sh)
if [ "$said" != "Hello!" ]; then
    echo "greet.sh:1: it says '$said'"
    exit 1
fi
