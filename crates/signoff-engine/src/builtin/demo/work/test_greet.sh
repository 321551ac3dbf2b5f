#!/bin/sh
# Checks greet.sh.
said=$(sh greet.sh Ada)
if [ "$said" != "Hello, Ada!" ]; then
    echo "greet.sh:1: it says '$said' to Ada"
    exit 1
fi
