# Sourced by the other scripts: what is there, and how to get what is not.

have() { command -v "$1" >/dev/null 2>&1; }

# can_install says whether this machine has apt and we may use it.
can_install() {
    have apt-get && { [ "$(id -u)" = 0 ] || have sudo; }
}

# install PACKAGE...: from Debian's or Ubuntu's archive. A server among them is
# not started: whoever wants one starts a private one.
install() {
    can_install || { echo "${0##*/}: please install: $*" >&2; return 1; }
    local root=()
    [ "$(id -u)" = 0 ] || root=(sudo)
    "${root[@]}" bash -s -- "$@" >&2 <<'AS_ROOT'
set -euo pipefail
policy=/usr/sbin/policy-rc.d # what Debian asks before it starts a service
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
AS_ROOT
}
