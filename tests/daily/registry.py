"""Writes what registries of several package managers serve, each with one package, `small`, and projects that need it.

Usage: registry.py SITE PROJECTS
"""

import base64
import hashlib
import io
import json
import os
import sys
import tarfile
import zipfile

SITE, PROJECTS = sys.argv[1:]
URL = "http://www.example.com"


def write(*names, data):
    path = os.path.join(*names)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def tar(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


# cargo
manifest = '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n'
crate = tar({"small-0.1.0/Cargo.toml": manifest, "small-0.1.0/src/lib.rs": 'pub const WORD: &str = "small";\n'})
entry = {"name": "small", "vers": "0.1.0", "deps": [], "features": {}, "yanked": False}
entry["cksum"] = hashlib.sha256(crate).hexdigest()
write(SITE, "crates/small-0.1.0.crate", data=crate)
write(SITE, "index/config.json", data=json.dumps({"dl": URL + "/crates/{crate}-{version}.crate"}))
write(SITE, "index/sm/al/small", data=json.dumps(entry) + "\n")
needs = '[dependencies]\nsmall = { version = "0.1", registry = "local" }\n'
write(PROJECTS, "rust/Cargo.toml", data=manifest.replace("small", "large") + needs)
write(PROJECTS, "rust/src/main.rs", data='fn main() { println!("{}", small::WORD); }\n')

# npm, pnpm, yarn and bun
package = tar({"package/package.json": '{"name": "small", "version": "0.1.0"}', "package/index.js": 'module.exports = "small";\n'})
integrity = "sha512-" + base64.b64encode(hashlib.sha512(package).digest()).decode()
tarball = URL + "/npm/small-0.1.0.tgz"
version = {"name": "small", "version": "0.1.0", "dist": {"tarball": tarball, "integrity": integrity}}
version["dist"]["shasum"] = hashlib.sha1(package).hexdigest()
document = {"name": "small", "dist-tags": {"latest": "0.1.0"}, "versions": {"0.1.0": version}}
write(SITE, "npm/small", data=json.dumps(document))
write(SITE, "npm/small-0.1.0.tgz", data=package)
project = {"name": "large", "version": "1.0.0", "dependencies": {"small": "0.1.0"}}
locked = {"version": "0.1.0", "resolved": tarball, "integrity": integrity}
lock = {"name": "large", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": project, "node_modules/small": locked}}
for name in ["node", "pnpm", "yarn", "bun"]:
    write(PROJECTS, name, "package.json", data=json.dumps(project))
    write(PROJECTS, name, ".npmrc", data=f"registry={URL}/npm/\naudit=false\nfund=false\nupdate-notifier=false\n")
write(PROJECTS, "node/package-lock.json", data=json.dumps(lock))

# pip and uv
about = "small-0.1.0.dist-info"
record = "".join(f"{name},,\n" for name in ["small.py", f"{about}/METADATA", f"{about}/WHEEL", f"{about}/RECORD"])
wheel = zipped({
    "small.py": 'WORD = "small"\n',
    f"{about}/METADATA": "Metadata-Version: 2.1\nName: small\nVersion: 0.1.0\n",
    f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{about}/RECORD": record,
})
file = "small-0.1.0-py3-none-any.whl"
digest = hashlib.sha256(wheel).hexdigest()
write(SITE, "simple/small/index.html", data=f'<!DOCTYPE html><a href="{URL}/wheels/{file}#sha256={digest}">{file}</a>\n')
write(SITE, "wheels", file, data=wheel)

# go
module = "example.com/small"
write(SITE, "go", module, "@v/list", data="v0.1.0\n")
write(SITE, "go", module, "@v/v0.1.0.info", data='{"Version": "v0.1.0", "Time": "2020-01-01T00:00:00Z"}')
write(SITE, "go", module, "@v/v0.1.0.mod", data=f"module {module}\n")
source = {"go.mod": f"module {module}\n", "small.go": 'package small\n\nconst Word = "small"\n'}
write(SITE, "go", module, "@v/v0.1.0.zip", data=zipped({f"{module}@v0.1.0/{name}": text for name, text in source.items()}))
write(PROJECTS, "go/go.mod", data=f"module example.com/large\n\ngo 1.19\n\nrequire {module} v0.1.0\n")
write(PROJECTS, "go/main.go", data=f'package main\n\nimport "{module}"\n\nfunc main() {{ println(small.Word) }}\n')

# maven
pom = '<project><modelVersion>4.0.0</modelVersion>{}<groupId>example</groupId><artifactId>{}</artifactId>' \
    '<version>1</version><packaging>pom</packaging></project>'
parent = "<parent><groupId>example</groupId><artifactId>parent</artifactId><version>1</version><relativePath/></parent>"
write(SITE, "maven/example/parent/1/parent-1.pom", data=pom.format("", "parent"))
write(PROJECTS, "maven/pom.xml", data=pom.format(parent, "large"))
write(PROJECTS, "maven/settings.xml", data=f"""<settings><mirrors><mirror><id>maven-default-http-blocker</id>
<mirrorOf>*</mirrorOf><url>{URL}/maven</url><blocked>false</blocked></mirror></mirrors></settings>""")
