# The user has logged in: a session of systemd with control groups of version 2.
as_user() {
    su --login dev --command "cd project && PATH=/opt/bin:\$PATH exec $*"
}

setup() {
    cat > /opt/bin/memory <<'SCRIPT'
#!/bin/sh
# All processes together have less than each of them would.
for limit in 64M 1G; do
    stockade run --limit memory=$limit -- sh -c '
        for i in 1 2 3 4; do { (head -c 30M /dev/zero; sleep 3) | tail -c 30M > /dev/null || echo killed; } & done
        wait' > /tmp/said-$limit 2>&1
    cat /tmp/said-$limit
done
grep -q killed /tmp/said-64M && ! grep -q killed /tmp/said-1G
SCRIPT
    chmod 755 /opt/bin/memory
}

also() {
    try memory memory
}
