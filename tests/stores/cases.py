"""usage: cases.py SHARDTOOL [KILLS]: reads and writes object stores and compares with the same files on this machine.

With KILLS, also kills so many runs and shares on each store, at any moment, and lets others go on."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import traceback

import servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "samples" / "tiny-llama"
PROGRAM = pathlib.Path(sys.argv[1]).resolve()
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 0
BUCKET = "models"


class Session:
    """A store, a folder for local files, and the program with the store's environment."""

    def __init__(self, store, folder):
        self.store = store
        self.folder = folder
        (folder / "staging").mkdir()
        self.environment = store.environment() | {"TMPDIR": str(folder / "staging")}
        self.client = store.client()
        self.client.create_bucket(Bucket=BUCKET)

    def run(self, *arguments, expect=0, **environment):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder,
                              env=self.environment | environment, timeout=120)
        if done.returncode != expect:
            raise AssertionError(f"{arguments}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def put(self, folder, prefix):
        for file in pathlib.Path(folder).iterdir():
            self.client.put_object(Bucket=BUCKET, Key=f"{prefix}/{file.name}", Body=file.read_bytes())
        return f"s3://{BUCKET}/{prefix}"


def content(folder):
    return {file.name: file.read_bytes() for file in pathlib.Path(folder).iterdir()}


def same(one, other):
    one, other = content(one), content(other)
    assert one.keys() == other.keys(), (one.keys(), other.keys())
    for name in one:
        assert one[name] == other[name], f"{name} differs"


def write_large(folder):
    """A model with tensors above the size of a request, cut on either axis."""
    rows, columns = 6000, 2048
    names = {"a.weight": (rows, columns), "b.weight": (rows, columns), "c.bias": (rows,)}
    header, payload = {}, b""
    for number, (name, shape) in enumerate(names.items()):
        size = 4 * rows * (columns if len(shape) == 2 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(payload), len(payload) + size]}
        block = bytes((number * 31 + i * i) % 251 for i in range(4099))
        payload += (block * (size // len(block) + 1))[:size]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + payload)
    rules = [{"match": "a.weight", "strategy": {"type": "axiswise", "axis": 0}},
             {"match": "b.weight", "strategy": {"type": "axiswise", "axis": 1}},
             {"match": "c.bias", "strategy": "replicate"}]
    (folder / "mapping.json").write_text(json.dumps({"version": 1, "mesh": [{"axis": "tp", "size": 3}], "rules": rules}))


def split_from_store(s):
    source = s.put(TINY, "tiny")
    s.run("split", TINY, "-o", "local", "--tp", 2)
    s.run("split", source, "-o", "remote", "--tp", 2)
    same(s.folder / "local", s.folder / "remote")


def large_tensors(s):
    write_large(s.folder / "large")
    source = s.put(s.folder / "large", "large model")
    s.run("split", "large", "-m", "large/mapping.json", "-o", "large-local")
    s.run("split", source, "-m", source + "/mapping.json", "-o", "large-remote")
    same(s.folder / "large-local", s.folder / "large-remote")
    s.run("split", source, "-m", source + "/mapping.json", "-o", "large-some", "--ranks", 1)
    s.run("split", "large", "-m", "large/mapping.json", "-o", "large-some-local", "--ranks", 1)
    same(s.folder / "large-some-local", s.folder / "large-some")


def merge_and_reshard(s):
    shards = s.put(s.folder / "local", "shards")
    s.run("merge", "local", "-o", "merged-local")
    s.run("merge", shards, "-o", "merged-remote")
    same(s.folder / "merged-local", s.folder / "merged-remote")
    s.run("reshard", "local", "-o", "four-local", "--tp", 4)
    s.run("reshard", shards, "-o", "four-remote", "--tp", 4)
    same(s.folder / "four-local", s.folder / "four-remote")


def compare_and_look(s):
    whole, shards = f"s3://{BUCKET}/tiny", f"s3://{BUCKET}/shards"
    s.run("diff", whole, shards)
    s.run("diff", whole, "local")
    s.run("diff", shards, TINY)
    s.run("inspect", whole)
    s.run("check", whole)
    s.run("check", shards)
    plan = json.loads(s.run("plan", whole, "--tp", 2, "--json"))
    assert plan["source_reads"]["requests"] > 0 and len(plan["source_reads"]["ranks"]) == 2, plan["source_reads"]
    assert "read amplification" in s.run("plan", whole, "--tp", 2)
    assert plan["source_reads"]["to_same_store"]["requests"] > 0, plan["source_reads"]
    assert "read amplification" in s.run("split", whole, "--tp", 2, "-o", "x", "-n")
    s.run("explain", whole, "model.layers.0.self_attn.q_proj.weight", "--tp", 2)
    s.run("validate", shards, "--reference", whole)
    verdicts = f"s3://{BUCKET}/out/verdicts"
    s.run("validate", shards, "--reference", whole, "--share", "1/2", "-o", verdicts)
    assert "have not ended: 0" in s.run("finish", verdicts, expect=4)
    assert "pass: the shards compute" in s.run("validate", shards, "-r", whole, "--share", "0/2", "-o", verdicts)
    assert "pass: the shards compute" in s.run("finish", verdicts)
    s.run("diff", f"s3://{BUCKET}/tiny/model-00001-of-00002.safetensors", f"{TINY}/model-00001-of-00002.safetensors")


def stored(s, prefix):
    pages = s.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix + "/")
    return {entry["Key"][len(prefix) + 1:]: s.client.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"].read()
            for page in pages for entry in page.get("Contents", [])}


def write_outputs(s):
    """Outputs of each verb have the bytes of the local ones, in parts where they are large."""
    s.run("split", "large", "-m", "large/mapping.json", "-o", f"s3://{BUCKET}/out/large =1")
    assert stored(s, "out/large =1") == content(s.folder / "large-local")
    s.run("merge", f"s3://{BUCKET}/shards", "-o", f"s3://{BUCKET}/out/merged")
    assert stored(s, "out/merged") == content(s.folder / "merged-local")
    s.run("reshard", "local", "-o", f"s3://{BUCKET}/out/four", "--tp", 4)
    assert stored(s, "out/four") == content(s.folder / "four-local")
    s.run("split", TINY, "-o", f"s3://{BUCKET}/out/four", "--tp", 2, expect=5)
    s.run("split", TINY, "-o", f"s3://{BUCKET}/out/four", "--tp", 2, "--force")
    assert stored(s, "out/four") == content(s.folder / "local")
    s.run("diff", f"s3://{BUCKET}/out/four", TINY)
    assert not s.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads")


def copied_rows(s):
    """Rows go from object to object inside the store; with --verify they pass this machine and get their hashes."""
    source, place = f"s3://{BUCKET}/large model", f"s3://{BUCKET}/out/copied"
    command = ["split", source, "-m", source + "/mapping.json", "-o", place, "--json"]
    report = json.JSONDecoder().raw_decode(s.run(*command))[0]
    found, expected = stored(s, "out/copied"), content(s.folder / "large-local")
    manifest = json.loads(found.pop("manifest.json"))
    expected.pop("manifest.json")
    assert found == expected
    assert manifest["tensors"]["a.weight"]["unread"]
    assert report["written"]["copied_by_store"] > 3 * 10**7, report
    assert "copied 1 tensor by itself" in " ".join(report["warnings"]), report
    s.run("diff", place, source)
    s.run("check", place)
    s.run(*command, "--force", "--verify")
    assert stored(s, "out/copied") == content(s.folder / "large-local")


def killed_runs(s):
    """A run that is killed publishes nothing, and the same command writes over what it left."""
    place = f"s3://{BUCKET}/out/killed"
    command = [PROGRAM, "split", "large", "-m", "large/mapping.json", "-o", place]
    kills = 0
    for delay in (0.1, 0.3, 0.5, 0.8, 1.2):
        process = subprocess.Popen(command, cwd=s.folder, env=s.environment, stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=delay)
            break  # faster than the delay
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        kills += 1
        left = stored(s, "out/killed")
        assert "manifest.json" not in left or ".shardtool-unfinished" in left, left.keys()
        if left:
            s.run("merge", place, "-o", "never", expect=4)
    assert kills > 0
    s.run(*command[1:], *(["--force"] if "manifest.json" in stored(s, "out/killed") else []))
    assert stored(s, "out/killed") == content(s.folder / "large-local")
    for upload in s.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []):
        s.client.abort_multipart_upload(Bucket=BUCKET, Key=upload["Key"], UploadId=upload["UploadId"])


def uploads(s, prefix):
    return s.client.list_multipart_uploads(Bucket=BUCKET, Prefix=prefix + "/").get("Uploads", [])


def kill_after(s, command, delay):
    """Runs a command and kills it after so many seconds. Returns false if it ended before."""
    process = subprocess.Popen(command, cwd=s.folder, env=s.environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=delay)
        return False
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True


def resumed_runs(s):
    """A run that is killed again and again goes on, and ends with the bytes of one run and no upload."""
    place = f"s3://{BUCKET}/out/resumed"
    command = [PROGRAM, "split", "large", "-m", "large/mapping.json", "-o", place]
    assert kill_after(s, command, 0.5)
    for delay in (0.5, 0.7, 0.9, 1.2):
        if not kill_after(s, [*command, "--resume"], delay):
            break
        left = stored(s, "out/resumed")
        if "manifest.json" in left and ".shardtool-unfinished" not in left:  # killed after its last request
            assert left == content(s.folder / "large-local")
        else:
            assert ".shardtool-unfinished" in left or not left, left.keys()
    s.run(*command[1:], "--resume")
    assert stored(s, "out/resumed") == content(s.folder / "large-local")
    assert not uploads(s, "out/resumed")


def shares_and_finish(s):
    """Shares in any order, some of them killed, make the bytes of one run."""
    for count in (1, 2, 4):
        prefix = f"out/shares-{count}"
        place = f"s3://{BUCKET}/{prefix}"
        command = [PROGRAM, "split", "large", "-m", "large/mapping.json", "-o", place]
        for number in reversed(range(1, count)):
            kill_after(s, [*command, "--share", f"{number}/{count}"], 0.3)
            s.run(*command[1:], "--share", f"{number}/{count}")
        if count > 1:
            assert "have not ended: 0" in s.run("finish", place, expect=4)
            assert "manifest.json" not in stored(s, prefix)
        s.run(*command[1:], "--share", f"0/{count}")
        assert stored(s, prefix) == content(s.folder / "large-local")
        assert not uploads(s, prefix)
        s.run("finish", place)


def names(s, prefix):
    pages = s.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix + "/")
    return {entry["Key"][len(prefix) + 1:] for page in pages for entry in page.get("Contents", [])}


def many_kills(s):
    """Kills runs and shares at any moment. What is published is whole; in the end nothing is left over."""
    draw = random.Random(1)
    prefix, place = "out/many", f"s3://{BUCKET}/out/many"
    split = [PROGRAM, "split", "large", "-m", "large/mapping.json", "-o", place]
    begin = time.monotonic()
    s.run(*split[1:])
    whole = time.monotonic() - begin
    kills = outputs = 0
    while kills < KILLS:
        for name in names(s, prefix):
            s.client.delete_object(Bucket=BUCKET, Key=f"{prefix}/{name}")
        shares = draw.choice([1, 2, 3])
        parts = [["--share", f"{number}/{shares}"] for number in range(shares)] if shares > 1 else [["--resume"]]
        deadly = draw.randrange(1, 12)  # kills of this output, so that some come near its end
        while deadly > 0:
            deadly -= 1
            if kill_after(s, [*split, *draw.choice(parts)], draw.uniform(0, whole)):
                kills += 1
            left = names(s, prefix)
            if "manifest.json" in left and ".shardtool-unfinished" not in left:
                assert stored(s, prefix) == content(s.folder / "large-local")
        for part in parts:
            s.run(*split[1:], *part)
        assert stored(s, prefix) == content(s.folder / "large-local")
        assert not uploads(s, prefix)
        outputs += 1
    print(f"     {kills} kills, {outputs} outputs: none damaged, published early, or with something left over")


def discarded_runs(s):
    place = f"s3://{BUCKET}/out/discarded"
    s.run("split", "large", "-m", "large/mapping.json", "-o", place, "--share", "1/2")
    assert place in s.run("resume", "--list", place)
    s.run("split", "large", "-m", "large/mapping.json", "-o", place, "--mesh", "tp=2", "--share", "0/2", expect=4)
    s.run("resume", "--discard", place)
    assert not stored(s, "out/discarded") and not uploads(s, "out/discarded")


def doctor_lists_uploads(s):
    s.run("doctor", f"s3://{BUCKET}/out/four")
    begun = s.client.create_multipart_upload(Bucket=BUCKET, Key="out/four/part of a file")
    text = s.run("doctor", f"s3://{BUCKET}/out/four", expect=1)
    assert "part of a file" in text and begun["UploadId"] in text, text
    s.client.abort_multipart_upload(Bucket=BUCKET, Key="out/four/part of a file", UploadId=begun["UploadId"])


def odd_keys(s):
    for prefix in ("k=1+2 &", "\u00e9 \u6f22", "a/../b", "100%41", "c#d"):
        source = s.put(TINY, prefix)
        s.run("diff", source, TINY)


def refusals(s):
    text = s.run("inspect", f"s3://{BUCKET}/nothing-here", expect=4)
    assert "E0302" in text or "there is no such" in text, text
    text = s.run("inspect", "s3://no-such-bucket-here/x", expect=4)
    assert "no such bucket" in text, text
    if s.store.checks_signatures:
        text = s.run("inspect", f"s3://{BUCKET}/tiny", expect=4, AWS_SECRET_ACCESS_KEY="wrong")
        assert "secret key is wrong" in text, text
    text = s.run("inspect", f"s3://{BUCKET}/tiny", expect=6, AWS_ENDPOINT_URL="http://127.0.0.1:1",
                 SHARDTOOL_S3_TIMEOUT="2")
    assert "does not answer" in text, text


CASES = [split_from_store, large_tensors, merge_and_reshard, compare_and_look, write_outputs, copied_rows,
         killed_runs, resumed_runs,
         shares_and_finish, *([many_kills] if KILLS else []), discarded_runs, doctor_lists_uploads, odd_keys, refusals]


def run_cases(server, folder):
    passed = failed = 0
    (folder / "files").mkdir()
    with server(folder) as store:
        session = Session(store, folder / "files")
        for case in CASES:
            try:
                case(session)
                print(f"PASS {store.name}: {case.__name__}", flush=True)
                passed += 1
            except Exception:
                print(f"FAIL {store.name}: {case.__name__}\n{traceback.format_exc()}", flush=True)
                failed += 1
    return passed, failed


def main():
    passed = failed = 0
    for server in (servers.moto, servers.swift):
        # Beside the venv and not in /tmp: Swift wants user attributes.
        with tempfile.TemporaryDirectory(dir=servers.BIN.parent, prefix="data-") as folder:
            counts = run_cases(server, pathlib.Path(folder))
            passed += counts[0]
            failed += counts[1]
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


main()
