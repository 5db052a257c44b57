#!/bin/sh
# Count levels and the most frequent messages of log files. POSIX shell and awk, no temporary files.
set -eu

usage() {
    echo "usage: digest.sh [-n COUNT] [FILE...]" >&2
    exit 2
}

count=5
while getopts n: option; do
    case $option in
        n) count=$OPTARG ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
case $count in
    '' | *[!0-9]*) usage ;;
esac

for file in "$@"; do
    # awk goes on after a file that it cannot open; a digest with a hole in it would look complete.
    [ -f "$file" ] && [ -r "$file" ] || {
        echo "digest.sh: cannot read $file" >&2
        exit 1
    }
    # awk takes a name with = in it for an assignment, and - for standard input, unless a slash stands before.
    shift
    case $file in
        /*) set -- "$@" "$file" ;;
        *) set -- "$@" "./$file" ;;
    esac
done

awk -v most="$count" '
    BEGIN { split("FATAL ERROR WARNING WARN INFO DEBUG TRACE", levels, " ") }
    {
        level = "OTHER"
        message = $0
        for (i = 1; i in levels; i++) {
            at = match(toupper($0), "(^|[^A-Z])" levels[i] "([^A-Z]|$)")
            if (at) {
                level = levels[i] == "WARN" ? "WARNING" : levels[i]
                message = substr($0, RSTART + RLENGTH)
                break
            }
        }
        seen[level]++
        gsub(/[0-9]+/, "#", message)
        sub(/^[^A-Za-z#]+/, "", message)
        if (level != "OTHER") often[level "  " message]++
    }
    END {
        print NR " lines"
        for (i = 1; i in levels; i++) if (seen[levels[i]]) printf "%7d  %s\n", seen[levels[i]], levels[i]
        if (seen["OTHER"]) printf "%7d  %s\n", seen["OTHER"], "without a level"
        if (most > 0) print "most frequent:"
        for (n = 0; n < most; n++) {
            best = ""
            for (one in often)
                if (best == "" || often[one] > often[best] || (often[one] == often[best] && one < best)) best = one
            if (best == "") break
            printf "%7d  %s\n", often[best], best
            delete often[best]
        }
    }
' "$@"
