#!/usr/bin/env bash
# usage: version_test.sh SOURCE VERSION
# The changelogs, the conda recipe and the README name the version of the project.
set -euo pipefail
cd "$1"
version=$2
has() {
  grep -qF -- "$2" "$1" || { echo "$1 has no '$2'"; exit 1; }
}
has lib/CHANGELOG.md "## $version"
[[ $(sed -n 1p lib/cmake/debian/changelog) == "shardtool ($version) "* ]] || { echo "debian/changelog begins with another"; exit 1; }
has samples/ci/conda/recipe.yaml "  version: \"$version\""
has README.md "shardtool_${version}_amd64.deb"
has README.md "shardtool-$version-linux-x86_64.tar.gz"
