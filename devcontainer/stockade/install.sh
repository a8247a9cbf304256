#!/bin/sh
# Installs Stockade in an image, as root: bubblewrap, the program, its configuration, the shims of agents and
# the guard. The options of devcontainer-feature.json come as environment variables. Safe to run again.
set -eu
umask 022
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

agents=${AGENTS-claude}
guard=${GUARD-true}
internet=${INTERNET-true}
allow=${ALLOW-}
lock=${LOCK-network.mode}
source=${SOURCE-auto}
sha256=${SHA256-}
version=${VERSION-}

here=$(cd "$(dirname "$0")" && pwd)
share=/usr/local/share/stockade
config=/etc/stockade/config.toml
mark="# Written by Stockade's devcontainer feature, from its options. Change them there, and build the image again."

# fail WHAT FIX
fail() {
    echo "stockade feature: $1" >&2
    echo "stockade feature: fix: $2" >&2
    exit 1
}

# only NAME VALUE CHARACTERS: refuses other characters, so that no value means more than itself.
only() {
    case $2 in
        *[!$3]*) fail "option $1 has a character that it cannot have: $2" "use only ${4-$3}" ;;
    esac
}

is_boolean() {
    case $2 in
        true | false) ;;
        *) fail "option $1 is neither true nor false: $2" "write \"$1\": true, or false" ;;
    esac
}

# words LIST: the entries of a list that commas or blanks separate, as a line.
words() {
    printf '%s\n' "$1" | tr -s ', ' '  ' | sed 's/^ //; s/ $//'
}

# --- The options, before anything is changed.
only agents "$agents" 'a-z0-9_, -' 'names of agents, with commas between'
is_boolean guard "$guard"
is_boolean internet "$internet"
only allow "$allow" ']A-Za-z0-9.:/*_[, -' 'rules as the option --allow of "stockade run" takes them, with commas between'
only lock "$lock" 'a-z_., -' 'names of keys, with commas between'
only version "$version" '0-9A-Za-z.+-' 'a version such as 0.1.0'
only sha256 "$sha256" '0-9a-f' 'the 64 digits that sha256sum prints'
case ${#sha256} in
    0 | 64) ;;
    *) fail "option sha256 has ${#sha256} digits" "give the 64 digits that sha256sum prints" ;;
esac
case $source in
    auto | beside | installed) ;;
    https://*.deb | https://*.tar.gz)
        only source "$source" 'A-Za-z0-9.:/_~%+-' 'an address without query'
        [ -n "$sha256" ] || fail "option source is an address, and sha256 is not given" \
            "give the checksum, from the release's SHA256SUMS"
        ;;
    *) fail "option source is none of auto, beside, installed and https://….deb or .tar.gz: $source" "use one of them" ;;
esac
[ -n "$(words "$agents")" ] || fail "option agents names none" 'write "agents": "claude"'
[ "$(id -u)" = 0 ] || fail "this is not root" "run it as root, as builds of images do"

# --- Packages of the distribution.
# packages NAME...
packages() {
    echo "Installing $*"
    if command -v apt-get >/dev/null; then
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"
    elif command -v dnf >/dev/null; then
        dnf install -y -q "$@"
    elif command -v microdnf >/dev/null; then
        microdnf install -y "$@"
    elif command -v apk >/dev/null; then
        apk add --no-progress "$@"
    else
        fail "no package manager is here that this script knows (apt-get, dnf, microdnf, apk)" \
            "install in the image: $*"
    fi || fail "the package manager could not install: $*" "see its message above"
}

# The program looks for bubblewrap at these places only.
bubblewrap() {
    for bwrap in /usr/bin/bwrap /usr/local/bin/bwrap /bin/bwrap; do
        [ -x "$bwrap" ] && return
    done
    return 1
}
bubblewrap || packages bubblewrap
bubblewrap || fail "bubblewrap is not where Stockade looks for it" "install it as /usr/bin/bwrap"
number=$("$bwrap" --version | sed 's/^[^0-9]*//')
case $number in
    0.[0-7] | 0.[0-7].*)
        fail "bubblewrap $number is too old" "use an image with 0.8 or later: Debian 12, Ubuntu 24.04 or newer"
        ;;
esac

# --- The program.
machine=$(uname -m)
case $machine in
    x86_64) debian=amd64 ;;
    aarch64) debian=arm64 ;;
    *) fail "there is no Stockade for $machine" "use an image for x86_64 or aarch64" ;;
esac

# find_beside: sets `package` to the file of a release that lies beside this script.
find_beside() {
    package=
    for file in "$here"/stockade_*_"$debian".deb "$here"/stockade-*-"$machine"-linux.tar.gz; do
        case $file in
            *.deb) command -v apt-get >/dev/null || continue ;;
        esac
        [ -f "$file" ] || continue
        case $package in
            '') package=$file ;;
            *.deb) [ "${file%.deb}" = "$file" ] || two=1 ;;
            *) two=1 ;;
        esac
        [ -z "${two-}" ] || fail "${package##*/} and ${file##*/} are both beside install.sh" "leave one there"
    done
    [ -n "$package" ]
}

download() {
    package=$scratch/${source##*/}
    if ! command -v curl >/dev/null && ! command -v wget >/dev/null; then
        packages ca-certificates curl
    fi
    if command -v curl >/dev/null; then
        curl --proto '=https' --fail --silent --show-error --location --output "$package" "$source"
    else
        wget -q -O "$package" "$source"
    fi || fail "$source cannot be downloaded" "see the message above"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
program=
case $source in
    installed) package= ;;
    https://*) download ;;
    beside) find_beside || fail "no package for $machine lies beside install.sh" \
        "put stockade_…_$debian.deb or stockade-…-$machine-linux.tar.gz of a release there" ;;
    auto) find_beside || : ;;
esac
if [ -n "$package" ]; then
    if [ -n "$sha256" ]; then
        echo "$sha256  $package" | sha256sum -c - >/dev/null 2>&1 ||
            fail "${package##*/} does not have the checksum of option sha256" "get both again from the release"
    fi
    echo "Installing ${package##*/}"
    case $package in
        *.deb)
            command -v apt-get >/dev/null || fail "${package##*/} needs apt-get" "use the release's tar.gz"
            # From a place that apt's own user can read.
            chmod 755 "$scratch"
            cp "$package" "$scratch/stockade.deb"
            packages "$scratch/stockade.deb"
            program=/usr/bin/stockade
            ;;
        *)
            tar -xzo -f "$package" -C /usr/local --strip-components=1 ||
                fail "${package##*/} cannot be unpacked" "get it again from the release"
            program=/usr/local/bin/stockade
            ;;
    esac
elif [ -n "$sha256" ]; then
    fail "option sha256 is given, and no package lies beside install.sh" "put the package there, or leave out sha256"
fi
found=$(command -v stockade) || fail "there is no Stockade: none in the image, and no package beside install.sh" \
    "put stockade_…_$debian.deb or stockade-…-$machine-linux.tar.gz of a release beside install.sh"
[ "${program:-$found}" = "$found" ] || fail "$found comes before $program in PATH" "remove $found from the image"
program=$found
is=$("$program" --version) || fail "$program does not run in this image" "use the release's static program"
is=${is#stockade }
[ "${version:-$is}" = "$is" ] || fail "this is Stockade $is, not $version" "use the package of $version"

agents=$(words "$agents")
for agent in $agents; do
    [ "$agent" != generic ] || fail "generic is no agent" 'name one, such as "claude"'
    "$program" config show --profile "$agent" >/dev/null 2>"$scratch/said" || {
        cat "$scratch/said" >&2
        fail "Stockade knows no agent $agent" "see its message above"
    }
done

# --- The configuration. Stockade itself judges rules and locks.
# quoted LIST: as the inside of a TOML array. No entry can have a quotation mark in it.
quoted() {
    for word in $1; do
        printf '"%s", ' "$word"
    done | sed 's/, $//'
}
# No entry is a pattern for files.
set -f
rules=$(words "$allow") locks=$(words "$lock")
if [ -z "$rules$locks" ] && [ "$internet" = true ]; then
    # One that this script wrote for other options.
    [ ! -e "$config" ] || [ "$(head -n 1 "$config")" != "$mark" ] || rm "$config"
else
    if [ -e "$config" ] && [ "$(head -n 1 "$config")" != "$mark" ]; then
        fail "the image has a $config of its own" \
            'keep it with "allow": "", "lock": "" and "internet": true; or remove it from the image'
    fi
    mkdir -p "${config%/*}"
    printf '%s\nlock = [%s]\n\n[network]\ninternet = %s\nallow = [%s]\n' \
        "$mark" "$(quoted "$locks")" "$internet" "$(quoted "$rules")" >"$config.new"
    # A file in the current directory would be in the workspace.
    (cd "$scratch" && "$program" config check "$config.new") >"$scratch/said" 2>&1 || {
        cat "$scratch/said" >&2
        rm "$config.new"
        fail "Stockade does not take the options allow, lock and internet" "see its message above"
    }
    mv "$config.new" "$config"
fi

# --- The shims: in a directory of their own, since npm installs agents as /usr/local/bin/claude.
rm -rf "$share/shims"
mkdir -p "$share/shims"
for agent in $agents; do ln -s "$program" "$share/shims/$agent"; done
# Debian's /etc/profile sets PATH anew.
[ ! -d /etc/profile.d ] || cat >/etc/profile.d/stockade.sh <<EOT
$mark
case \$PATH in
    $share/shims:*) ;;
    *) PATH=$share/shims:\$PATH ;;
esac
EOT
# Runs as the container's user: in the files of the user's shells, the shims come before ~/.local/bin.
cat >"$share/post-create" <<EOT
#!/bin/sh
$mark
exec $program shim add --write-shell $agents
EOT
chmod 755 "$share/post-create"

# --- The guard, for agents that have hooks.
[ "$guard" = false ] || for agent in $agents; do
    "$program" guard add --system "$agent" >"$scratch/said" 2>&1 || grep -q 'cannot be guarded' "$scratch/said" || {
        cat "$scratch/said" >&2
        fail "$agent cannot be given a guard" "see the message above; or set \"guard\": false"
    }
    cat "$scratch/said"
done

echo "Stockade $is is installed for: $agents. In the container, \`stockade doctor\` says whether sessions start."
