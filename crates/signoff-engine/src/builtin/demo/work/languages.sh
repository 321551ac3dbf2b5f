# The visitor's language is the one of the environment; English where it is not known here.
case $LANG in
    de*) echo "Auf Wiedersehen, $name!" ;;
    fr*) echo "Au revoir, $name !" ;;
    *) echo "Goodbye, $name!" ;;
esac
