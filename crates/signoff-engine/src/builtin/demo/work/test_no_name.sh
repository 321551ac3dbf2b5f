if sh greet.sh 2> /dev/null; then
    echo "greet.sh:1: it greets nobody"
    exit 1
fi
