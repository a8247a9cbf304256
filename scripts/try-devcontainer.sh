#!/bin/sh
# Tries devcontainer/ in rootless Podman, as docs/devcontainer.md describes it: builds images with the recipe and
# with the reference tool for devcontainers, and uses the agent in their containers.
#
#   scripts/try-devcontainer.sh [PROGRAM]     PROGRAM is the built stockade [default: it is built]
#
# Nothing leaves the machine: the containers have the network of a namespace in which this script made an internet
# and devices. The base image is made once, with apt and npm, and kept below target/devcontainer.
set -eu
cd "$(dirname "$0")/.."
here=$PWD
kept=$here/target/devcontainer

# --- As the caller: what is needed, then all namespaces.
prepare() {
    . scripts/packages.sh
    missing=
    for pair in podman:podman runc:runc newuidmap:uidmap mmdebstrap:mmdebstrap npm:npm ip:iproute2 curl:curl; do
        PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
    done
    # shellcheck disable=SC2086 # a list of words
    [ -z "$missing" ] || install_packages $missing
    [ -n "$program" ] || {
        cargo build --quiet --locked --package stockade
        program=$here/target/debug/stockade
    }
    mkdir -p "$kept"
    npm="npm install --global --no-audit --no-fund --prefix"
    [ -x "$kept/agent/bin/claude" ] || $npm "$kept/agent" @anthropic-ai/claude-code
    [ -x "$kept/tool/bin/devcontainer" ] || $npm "$kept/tool" @devcontainers/cli
    [ -f "$kept/base.tar" ] || as_root sh -eu "$0" base
    as_root unshare --mount --net --pid --fork --kill-child --mount-proc sh -eu "$0" machine "$program"
}

# --- As root: an image of this distribution, with an agent that npm installed for all users. It has no bubblewrap
# yet, but apt finds one: in a repository of its own, since containers here have no network.
base() {
    # shellcheck disable=SC2016 # for the shell of the hook
    mmdebstrap --quiet --variant=apt --include=busybox-static,ca-certificates,curl,git,procps \
        --aptopt='APT::Install-Recommends "false"' \
        --customize-hook='chroot "$1" useradd --uid 1000 --create-home --shell /bin/bash vscode' \
        --customize-hook='mkdir "$1/opt/repository"' \
        --customize-hook='chroot "$1" sh -euc "cd /opt/repository; apt-get -qq download bubblewrap libcap2"' \
        --customize-hook='cd "$1/opt/repository"; for file in *.deb; do dpkg-deb --field "$file"; echo "Filename: ./$file"
            echo "Size: $(stat -c %s "$file")"; echo "SHA256: $(sha256sum "$file" | cut -c1-64)"; echo; done >Packages' \
        --customize-hook='rm -f "$1"/etc/apt/sources.list.d/*' \
        --customize-hook='echo "deb [trusted=yes] file:/opt/repository ./" >"$1/etc/apt/sources.list"' \
        --customize-hook="cp -r --preserve=links '$kept/agent/bin' '$kept/agent/lib' \"\$1/usr/local/\"" \
        "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$kept/base.new.tar"
    mv "$kept/base.new.tar" "$kept/base.tar"
}

# --- As root of the machine, in namespaces of their own: a network, and an ordinary user.
machine() {
    export PATH="$PATH:/usr/sbin:/sbin"
    # Only among these namespaces: Podman asks for it.
    mount --make-rshared /
    ip link set lo up
    unshare --net sleep infinity &
    until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
    outside="nsenter --net=/proc/$!/ns/net"
    ip link add uplink type veth peer name downlink netns $!
    ip address add 192.168.10.2/24 dev uplink
    ip link set uplink up
    ip route add default via 192.168.10.1
    $outside ip link set lo up
    $outside ip link set downlink up
    # The internet, and devices nearby.
    $outside ip address add 93.184.216.34/32 dev lo
    for host in 1 21 22; do $outside ip address add "192.168.10.$host/24" dev downlink; done
    # In memory, so that a root elsewhere on the disk does not matter.
    mount -t tmpfs -o mode=755 run /run
    mkdir -p /run/www /run/try /run/user/61000 /run/source
    echo '["stockade inside >/dev/null && echo proven"]' >/run/calls
    echo "a page" >/run/www/index.html
    cd /run/www
    $outside /usr/bin/python3 "$here/tests/daily/model.py" /run/calls /run/home/results 93.184.216.34 >/dev/null &
    $outside /usr/bin/python3 -m http.server 80 >/dev/null 2>&1 &
    until curl --silent --output /dev/null http://192.168.10.22/; do sleep 0.1; done

    # Podman's own files are on a disk, and gone at the end.
    home=$(mktemp -d /var/tmp/stockade-devcontainer.XXXXXX)
    trap 'rm -rf "$home"' EXIT
    mkdir /run/home
    mount --bind "$home" /run/home
    mount --bind "$here" /run/source
    cp "$1" /run/try/stockade
    for file in passwd group subuid subgid; do cp "/etc/$file" /run/try/; done
    echo 'dev:x:61000:61000::/run/home:/bin/sh' >>/run/try/passwd
    echo 'dev:x:61000:' >>/run/try/group
    for file in subuid subgid; do echo 'dev:200000:65536' >"/run/try/$file"; done
    for file in passwd group subuid subgid; do mount --bind "/run/try/$file" "/etc/$file"; done
    mkdir -p /run/home/.config/containers
    printf '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n[containers]\nlog_driver = "k8s-file"\nnetns = "host"\n' \
        >/run/home/.config/containers/containers.conf
    printf '[storage]\ndriver = "overlay"\n' >/run/home/.config/containers/storage.conf
    chown -R 61000:61000 /run/home /run/user/61000
    chmod 700 /run/user/61000
    setpriv --reuid=61000 --regid=61000 --clear-groups env -i HOME=/run/home XDG_RUNTIME_DIR=/run/user/61000 \
        PATH="$PATH" sh -eu /run/source/scripts/try-devcontainer.sh user
}

# --- As the user: images and containers.
user() {
    cd /run/home
    context=/run/home/context
    mkdir -p "$context" /run/home/project
    cp -r /run/source/devcontainer/* "$context/"
    # What a release has, in the same shape.
    tree=stockade-0.0.0-$(uname -m)-linux
    mkdir -p "/run/home/$tree/bin"
    cp /run/try/stockade "/run/home/$tree/bin/"
    tar -czf "$context/stockade/$tree.tar.gz" -C /run/home "$tree"
    podman import --quiet /run/source/target/devcontainer/base.tar base >/dev/null

    step "a bad rule refuses the build, with the message of config check"
    refused "invalid prefix length" build ALLOW=10.0.0.0/33
    step "an option cannot run anything"
    # shellcheck disable=SC2016 # it must not expand
    refused "option allow has a character" build 'ALLOW=$(touch /planted)'
    step "without bubblewrap and without apt's repository, the build is refused"
    printf 'FROM base\nRUN rm -r /opt/repository\n' | podman build --quiet --network=none --tag poor - >/dev/null
    refused "could not install: bubblewrap" build BASE=poor
    step "the recipe builds"
    build "ALLOW=192.168.10.21, tcp://192.168.10.22:8000" AGENTS=claude,codex

    step "the container has no capability and no device for tunnels"
    inside sh -c 'grep -q "CapBnd:.*0000000000000000" /proc/self/status && ! test -e /dev/net/tun'
    step "claude is the shim, and npm's program is behind it"
    for shell in "sh -c" "bash -c" "bash -lc" "bash -ic" "bash -lic"; do
        # shellcheck disable=SC2016,SC2086 # for the shell inside; a list of words
        same "$(inside $shell 'readlink -f $(command -v claude)')" /usr/local/bin/stockade
    done
    same "$(inside claude --version)" "$(inside /usr/local/bin/claude --version)"
    inside sh -c 'claude --version && stockade log --list' | grep claude
    step "verify passes"
    inside stockade verify >verify.txt || { cat verify.txt; exit 1; }
    grep -v "^PASS" verify.txt
    step "a listed device is reached, another one is not"
    page="curl --silent --show-error --fail --max-time 20 http"
    # shellcheck disable=SC2086 # a list of words
    inside $page://192.168.10.22/ >/dev/null
    # shellcheck disable=SC2086
    for address in 93.184.216.34 192.168.10.21; do inside stockade run -- $page://$address/; done
    # shellcheck disable=SC2086
    refused "tcp://192.168.10.22:80" inside stockade run -- $page://192.168.10.22/
    step "a locked key stays"
    refused "network.mode" inside stockade run --mode host -- true
    step "the agent works in the sandbox, as the kernel proves"
    ask="sh -c \"\$0 -p work --allowedTools Bash\""
    same "$(inside sh -c "$ask" claude)" "Done."
    same "$(cat results)" '["proven"]'
    rm -f results
    step "the guard refuses the agent that was started around the shim"
    inside sh -c "$ask" /usr/local/bin/claude >said.txt 2>&1 || :
    if [ -e results ] || ! grep "Start it with: stockade claude" said.txt; then
        cat said.txt
        exit 1
    fi

    step "under Docker's filter no session starts, and doctor names the file that helps"
    calls=$(/usr/bin/python3 /run/source/scripts/without-calls.py /run/source/devcontainer/seccomp.json /run/home)
    options=--security-opt=seccomp=/run/home/without-all.json
    refused "seccomp=FILE" inside stockade doctor
    refused "no session can be started" inside stockade run -- true
    step "nor does one if a single call of the file is missing: $calls"
    for call in $calls; do
        options=--security-opt=seccomp=/run/home/without-$call.json
        if inside stockade run -- true >said.txt 2>&1; then
            echo "a session does not need $call" >&2
            exit 1
        fi
    done
    step "with the file, verify passes"
    options=--security-opt=seccomp=/run/source/devcontainer/seccomp.json
    inside stockade verify >verify.txt || { cat verify.txt; exit 1; }
    grep -v "^PASS" verify.txt

    step "the package for Debian does as well"
    options=
    mkdir -p deb/DEBIAN deb/usr/bin
    cp /run/try/stockade deb/usr/bin/
    printf 'Package: stockade\nVersion: 0.0.0\nArchitecture: %s\nMaintainer: nobody\nDescription: a trial\nDepends: bubblewrap (>= 0.8)\n' \
        "$(dpkg --print-architecture)" >deb/DEBIAN/control
    mv "$context/stockade/$tree.tar.gz" .
    dpkg-deb --root-owner-group -Zgzip -z1 --build deb "$context/stockade/stockade_0.0.0_$(dpkg --print-architecture).deb" >/dev/null
    build GUARD=false
    # shellcheck disable=SC2016 # for the shell inside
    same "$(inside sh -c 'readlink -f $(command -v claude)')" /usr/bin/stockade
    inside stockade run -- stockade inside
    step "without the guard, the agent works around the shim: the control"
    same "$(inside sh -c "$ask" /usr/local/bin/claude)" "Done."

    step "the reference tool builds a devcontainer with the feature"
    mkdir -p project/.devcontainer
    cp -r "$context/stockade" project/.devcontainer/
    cat >project/.devcontainer/devcontainer.json <<EOT
{
    "image": "localhost/base",
    "remoteUser": "vscode",
    "features": {"./stockade": {"allow": "192.168.10.21", "lock": "network"}},
    "runArgs": ["--network=host", "--userns=keep-id:uid=1000,gid=1000", "--cap-drop=all"],
    "updateRemoteUserUID": false
}
EOT
    tool up --buildkit never >up.txt 2>&1 || { cat up.txt; exit 1; }
    step "claude runs in the sandbox there"
    same "$(tool exec claude --version)" "$(tool exec /usr/local/bin/claude --version)"
    # shellcheck disable=SC2016 # for the shell inside
    same "$(tool exec bash -lic 'readlink -f $(command -v claude)')" /usr/bin/stockade
    tool exec stockade run -- stockade inside
    refused "locked" tool exec stockade run --allow 192.168.10.22 -- true
}

# tool COMMAND ARGUMENT...: for the container of the project.
tool() {
    command=$1
    shift
    # What it says about itself goes to its standard error.
    /run/source/target/devcontainer/tool/bin/devcontainer "$command" --docker-path podman --workspace-folder /run/home/project "$@"
}

step() {
    echo "-- $*"
}

# build OPTION=VALUE...: the image `jailed`.
build() {
    for option; do
        set -- "$@" --build-arg "$option"
        shift
    done
    podman build --quiet --network=none --tag jailed --build-arg BASE=base --build-arg ACCOUNT=vscode "$@" \
        --file "$context/Containerfile" "$context" 2>&1
}

# inside COMMAND...: in a container that has nothing.
inside() {
    # shellcheck disable=SC2086 # a list of words
    podman run --rm --quiet --network=host --cap-drop=all --security-opt=no-new-privileges --userns=keep-id:uid=1000,gid=1000 ${options-} \
        --volume=/run/home/project:/workspace --workdir=/workspace \
        --env=CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
        --env=ANTHROPIC_BASE_URL=http://93.184.216.34:8765 --env=ANTHROPIC_AUTH_TOKEN=decoy jailed "$@"
}

# refused TEXT COMMAND...: the command must fail, and say this.
refused() {
    text=$1
    shift
    if "$@" >said.txt 2>&1 || ! grep -F -e "$text" said.txt; then
        cat said.txt
        echo "not refused with \"$text\": $*" >&2
        exit 1
    fi
}

# same IS WANTED
same() {
    [ "$1" = "$2" ] || {
        echo "\"$1\" is not \"$2\"" >&2
        exit 1
    }
}

case ${1-} in
    base | user) "$1" ;;
    machine) machine "$2" ;;
    *)
        program=${1+$(realpath "$1")}
        prepare
        ;;
esac
