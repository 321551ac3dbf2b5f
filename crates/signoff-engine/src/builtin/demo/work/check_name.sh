if [ -z "$name" ]; then
    echo "usage: greet.sh NAME" >&2
    exit 2
fi
