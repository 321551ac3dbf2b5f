if sh greet.sh 2> /dev/null; then
    echo "greet.sh:1: it accepts a missing name"
    exit 1
fi
