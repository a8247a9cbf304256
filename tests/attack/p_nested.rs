//! Repositories that others lead to (P2): by gitlinks of an index, by worktrees and by `.git` files.

use super::p_git::{none_runs, plant};

#[test]
fn p02_repositories_that_others_lead_to_do_not_run_programs_outside() {
    const NESTED: &str = "git init -q -b main sub; cd sub
        git -c user.name=a -c user.email=a commit -q --allow-empty -m one; cd ..";
    const LINK: &str = "git -c advice.addEmbeddedRepo=false add sub";
    let new = format!("{NESTED}; {LINK}; git -C sub config core.fsmonitor $EVIL");
    let deep = format!(
        "mkdir -p a/b; cd a/b; {NESTED}; cd sub; git init -q deeper
         git -C deeper -c user.name=a -c user.email=a commit -q --allow-empty -m one
         git -c advice.addEmbeddedRepo=false add deeper; cd ../../..
         git -c advice.addEmbeddedRepo=false add a/b/sub
         git -C a/b/sub/deeper config core.fsmonitor $EVIL"
    );
    let hooks = format!(
        "{NESTED}; {LINK}; rm -rf sub/.git/hooks; mkdir h; cp evil h/post-checkout
         ln -s ../../h sub/.git/hooks"
    );
    let elsewhere = format!(
        "{NESTED}; {LINK}; mv sub/.git store; echo 'gitdir: ../store' > sub/.git
         git -C sub config core.fsmonitor $EVIL"
    );
    let many = format!(
        "for i in $(seq 300); do mkdir -p .git/modules/$i; done
         {NESTED}; {LINK}; mkdir -p .git/modules/z; rmdir .git/modules/z
         mv sub/.git .git/modules/z; echo 'gitdir: ../.git/modules/z' > sub/.git
         git -C sub config core.fsmonitor $EVIL"
    );
    let tree = format!("mkdir -p x/y; cd x/y; {NESTED}; git -C sub config core.fsmonitor $EVIL");
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    none_runs(&[
        plant("a gitlink to a new repository", leak(new), "git status"),
        plant("one in another", leak(deep), "git status"),
        plant(
            "hooks of a new repository that are a link",
            leak(hooks),
            "cd sub; git checkout -q -b x",
        ),
        plant(
            "a repository that a file names",
            leak(elsewhere),
            "git status",
        ),
        plant(
            "one submodule behind three hundred",
            leak(many),
            "git status",
        ),
        plant(
            "a repository that nothing leads to",
            leak(tree),
            "cd x/y/sub; git status",
        ),
    ]);
}

/// Writes indexes as git does not. `ran` is made by a repository that `evil` made and `arm` armed.
const INDEXES: &str = r#"
import hashlib, os, struct, subprocess
def sh(text):
    return subprocess.run(text, shell=True, check=True, capture_output=True, text=True).stdout.strip()
def entries():
    bytes, at, found = open('.git/index', 'rb').read(), 12, []
    for _ in range(struct.unpack('>I', bytes[8:12])[0]):
        length = struct.unpack('>H', bytes[at + 60:at + 62])[0] & 0xfff
        found.append((bytes[at:at + 60], bytes[at + 62:at + 62 + length]))
        at += (62 + length + 8) // 8 * 8
    return found
def entry(fields, name):
    bytes = fields + struct.pack('>H', len(name)) + name
    return bytes + b'\0' * ((len(bytes) + 8) // 8 * 8 - len(bytes))
def file(id, mode):
    return b'\0' * 24 + struct.pack('>I', mode) + b'\0' * 12 + bytes.fromhex(id)
def link(id):
    return file(id, 0o160000)
def write(body, path='.git/index'):
    open(path, 'wb').write(body + hashlib.sha1(body).digest())
def index(found, path='.git/index'):
    found = sorted(found, key=lambda entry: entry[1])
    head = b'DIRC' + struct.pack('>II', 2, len(found))
    write(head + b''.join(entry(*one) for one in found), path)
def two_lengths(name, path):
    sh(f'cd {path}; echo touch /home/dev/ran > rc; git hash-object -w rc'); id = sh(f'git -C {path} hash-object rc')
    sh(f'cd {path}; git config --unset core.repositoryformatversion; git config extensions.objectFormat sha256')
    first = file(id, 0o100644) + struct.pack('>H', 10) + name + b'\0\x0aaaaaaa'
    body = b'DIRC' + struct.pack('>II', 2, 1) + first + b'TREE\0\0\0\0TREE\0\0\0\4x\0\0\0'
    open(f'{path}/.git/index', 'wb').write(body + b'\0' * 20)
def two_readings(seen, hidden, carrier):
    body = b'DIRC' + struct.pack('>II', 2, len(seen)) + b''.join(entry(*one) for one in seen)
    assert len(seen) == len(hidden)
    parts, data, at = struct.pack('>I', 1), b'', len(body) + 8
    for one in sorted(hidden, key=lambda entry: entry[1]):
        parts += struct.pack('>II', at + len(data), 1); data += entry(*one)
    parts = b'IEOT' + struct.pack('>I', len(parts)) + parts
    end = struct.pack('>I', at + len(data)) + hashlib.sha1(parts[:8]).digest()
    data += parts + b'EOIE' + struct.pack('>I', 24) + end
    write(body + carrier + struct.pack('>I', len(data)) + data)
    sh('git config index.threads 4')
def arm(path):
    sh(f'git -C {path} config core.fsmonitor /home/dev/project/evil')
def evil(path):
    sh(f'git init -q {path}; cd {path}; git -c user.name=a -c user.email=b commit -q --allow-empty -m x')
    return sh(f'git -C {path} rev-parse HEAD')
"#;

#[test]
fn p02_indexes_that_git_did_not_write_lead_nowhere() {
    let python = |script: &str| -> &'static str {
        let script = format!("python3 - <<'END'\n{INDEXES}\n{script}\nEND\n");
        Box::leak(script.into_boxed_str())
    };
    none_runs(&[
        plant(
            "a name whose length is another than it seems",
            python(
                "id = evil('.git/zzz/sub'); found = entries()
real = sorted(found + [(link(id), b'.git/zzz/sub')], key=lambda entry: entry[1])
inner = b''.join(entry(*one) for one in found) + entry(found[0][0], b'zzz')
tail = b''.join(entry(*one) for one in real)
first = found[0][0] + b'LL!' + b'\\0' * 9 + inner + b'tree'
padding = -(len(first) + 4) % 8 or 8
size = len(first) + 4 + padding
length = size - 63
while (62 + length + 8) // 8 * 8 != size: length -= 1
first += struct.pack('>I', padding + len(tail)) + b'\\0' * padding
first = first[:60] + struct.pack('>H', length) + first[62:]
write(b'DIRC' + struct.pack('>II', 2, len(real) + 1) + first + tail)
arm('.git/zzz/sub')",
            ),
            "git status",
        ),
        plant(
            "a file among the hooks",
            python(
                "id = sh('git hash-object -w evil')
index(entries() + [(file(id, 0o100755), b'.git/hooks/post-checkout')])",
            ),
            "git restore .; git checkout -q -b x; git checkout -q main; true",
        ),
        plant(
            "a file above the worktree",
            python(
                "sh('echo touch /home/dev/ran > rc'); id = sh('git hash-object -w rc')
index(entries() + [(file(id, 0o100644), b'../rc')])",
            ),
            "rm -f ~/rc; git restore .; sh ~/rc; true",
        ),
        plant(
            "a file above the worktree, if hashes are short",
            python("two_lengths(b'../rc12345', '.')"),
            "rm -f ~/rc12345; git restore .; sh ~/rc12345; true",
        ),
        plant(
            "the same in a new repository",
            python("evil('sub'); two_lengths(b'../../rc99', 'sub')"),
            "rm -f ~/rc99; cd sub; git restore .; sh ~/rc99; true",
        ),
        plant(
            "a file above the worktree, in the index of a worktree elsewhere",
            python(
                "sh('echo touch /home/dev/ran > rc'); id = sh('git hash-object -w rc')
index(entries() + [(file(id, 0o100644), b'../rc')], '.git/worktrees/tree/index')",
            ),
            "rm -f ~/rc; cd ../tree; git restore .; sh ~/rc; true",
        ),
        plant(
            "a gitlink deep in a directory that the index has as a whole",
            python(
                "deep = 'd/' + 'a/' * 300 + 'sub'; os.makedirs(deep); os.chdir(deep); id = evil('.')
sh('git config core.fsmonitor /home/dev/project/evil'); os.chdir('/home/dev/project')
sh('git config core.sparseCheckout true; git config core.sparseCheckoutCone true')
sh('git config index.sparse true; mkdir -p .git/info; printf \"/*\\n!/*/\\n\" > .git/info/sparse-checkout')
def tree(line, how=''):
    return subprocess.run(f'git mktree {how}', shell=True, check=True, capture_output=True, input=line, text=True).stdout.strip()
whole = tree(f'160000 commit {id}\\tsub\\n', '--missing')
for _ in range(300): whole = tree(f'040000 tree {whole}\\ta\\n')
fields = b'\\0' * 24 + struct.pack('>I', 0o040000) + b'\\0' * 12 + bytes.fromhex(whole)
found = entries(); head = b'DIRC' + struct.pack('>II', 3, len(found) + 1)
first = fields + struct.pack('>HH', 0x4002, 0x4000) + b'd/'; first += b'\\0' * (8 - len(first) % 8)
write(head + first + b''.join(entry(*one) for one in found) + b'sdir' + struct.pack('>I', 0))",
            ),
            "git status; true",
        ),
        plant(
            "entries in the data of an extension that nobody knows",
            python(
                "sh('echo touch /home/dev/ran > rc'); id = sh('git hash-object -w rc')
sh('touch more; git add more'); found = entries()
two_readings(found, [(file(id, 0o100644), b'../rc'), found[0]], b'ZZZZ')",
            ),
            "rm -f ~/rc; git restore .; sh ~/rc; true",
        ),
        plant(
            "the same in one that git writes",
            python(
                "sh('echo touch /home/dev/ran > rc'); id = sh('git hash-object -w rc')
sh('touch more; git add more'); found = entries()
two_readings(found, [(file(id, 0o100644), b'../rc'), found[0]], b'TREE')",
            ),
            "rm -f ~/rc; git restore .; sh ~/rc; true",
        ),
        plant(
            "an entry without a name, for the whole worktree",
            python(
                "id = evil('vendor/x/evil'); sh(f'git update-index --add --cacheinfo 160000,{id},vendor/x/evil')
tree = sh('git write-tree'); sh('git reset -q; mkdir -p .git/info')
sh('git config core.sparseCheckout true; git config core.sparseCheckoutCone false')
fields = file(tree, 0o040000) + struct.pack('>HH', 0x4000, 0x4000); fields += b'\\0' * (8 - len(fields) % 8)
write(b'DIRC' + struct.pack('>II', 3, 1) + fields + b'sdir' + struct.pack('>I', 0))
arm('vendor/x/evil'); os.chmod('vendor', 0o311)",
            ),
            "git status; chmod 755 vendor",
        ),
        plant(
            "a gitlink upwards and into the directory of git's",
            python(
                "outer = evil('sub'); id = evil('.git/zzz/evil')
os.chdir('sub'); index([(link(id), b'../.git/zzz/evil')]); os.chdir('..')
index(entries() + [(link(outer), b'sub')]); arm('.git/zzz/evil')",
            ),
            "git status",
        ),
        plant(
            "a shared index behind sixteen others",
            python(
                "id = evil('.git/zzz/sub'); index(entries() + [(link(id), b'.git/zzz/sub')])
sh('git update-index --split-index')
shared = lambda: [one.name for one in os.scandir('.git') if one.name.startswith('sharedindex.')]
real, number = shared()[0], 0
while real in shared()[:16]:
    write(b'DIRC' + struct.pack('>II', 2, 0), '.git/sharedindex.%040x' % number); number += 1
arm('.git/zzz/sub')",
            ),
            "git status",
        ),
        plant(
            "a gitlink in the place of a file of a shared index",
            python(
                "open('sub', 'w').close(); sh('git add sub; git update-index --split-index; rm sub')
id = evil('sub'); sh(f'git update-index --cacheinfo 160000,{id},sub'); arm('sub')",
            ),
            "git status",
        ),
        plant(
            "an index that is a link",
            python(
                "id = evil('.git/zzz/sub'); index(entries() + [(link(id), b'.git/zzz/sub')])
os.rename('.git/index', '.git/real'); os.symlink('real', '.git/index'); arm('.git/zzz/sub')",
            ),
            "git status",
        ),
        plant(
            "a worktree behind a link",
            python(
                "sh('mkdir -p sub .git/zzz .git/modules; git init -q --separate-git-dir .git/modules/sub sub')
sh('git -C sub -c user.name=a -c user.email=b commit -q --allow-empty -m x; ln -s .git/zzz w')
outer = sh('git -C sub rev-parse HEAD'); id = evil('.git/zzz/inner')
index([(link(id), b'inner')], '.git/modules/sub/index')
sh('git -C .git/modules/sub config core.worktree ../../../w')
index(entries() + [(link(outer), b'sub')]); arm('.git/zzz/inner')",
            ),
            "git status",
        ),
        plant(
            "a file that names a repository, with Windows' end of line",
            python(
                "id = evil('.git/zzz/x'); arm('.git/zzz/x')
sh('mkdir sub; mv .git/zzz/x/.git .git/zzz/y; mkdir .git/zzz/y$(printf \"\\\\r\")')
open('sub/.git', 'w', newline='').write('gitdir: ../.git/zzz/y\\r\\n')
index(entries() + [(link(id), b'sub')])",
            ),
            "git status",
        ),
        plant(
            "the repository of a submodule in that of another",
            python(
                "sh('mkdir -p .git/modules/a/objects .git/modules/a/refs; echo x > .git/modules/a/HEAD')
id = evil('lib'); sh('mv lib/.git .git/modules/a/b'); sh('rm -rf .git/modules/a/b/hooks')
open('.gitmodules', 'w').write('[submodule \"a/b\"]\\n\\tpath = lib\\n\\turl = https://127.0.0.1:1/x\\n')
sh('git add .gitmodules'); index(entries() + [(link(id), b'lib')])
sh('mkdir .git/modules/a/b/hooks; cp evil .git/modules/a/b/hooks/post-checkout')
sh('git --git-dir .git/modules/a/b config core.fsmonitor /home/dev/project/evil')",
            ),
            "git submodule update --init; git status; true",
        ),
    ]);
}
