# Sourced by the scripts that run a command with servers of its own.

STOP_SECONDS=10 # for a process to end by itself

command='' # that is running

# end sends a signal to a process, or to a group (-PID), and kills it when it
# has not ended in time.
end() { # signal target
    local i
    kill -s "$1" -- "$2" || return 0
    for ((i = 0; i < STOP_SECONDS * 20; i++)); do
        kill -0 -- "$2" || return 0
        sleep 0.05
    done
    kill -s KILL -- "$2" || true
} 2>/dev/null

# free_port is a port that nobody listens on, below those that the system gives
# to outgoing connections. Between this and the server's start somebody else may
# take it: hence PORT_TRIES of the callers.
free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "$port"
}

# run runs a command in a group of its own, so that a signal reaches all of it.
run() { # command...
    local status=0
    set -m
    "$@" <&0 &
    command=$!
    set +m
    wait "$command" || status=$?
    command=''
    return "$status"
}

# interrupted passes a signal on to the command and whatever it has started.
interrupted() { # status
    trap '' INT TERM HUP
    [ -z "$command" ] || end TERM "-$command"
    exit "$1"
}
trap 'interrupted 130' INT
trap 'interrupted 143' TERM
trap 'interrupted 129' HUP
