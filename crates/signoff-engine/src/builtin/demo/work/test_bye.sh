#!/bin/sh
# Checks bye.sh.
said=$(LANG=C sh bye.sh Ada)
if [ "$said" != "Goodbye, Ada!" ]; then
    echo "bye.sh:1: it says '$said' to Ada"
    exit 1
fi
