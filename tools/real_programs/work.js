// Work for node: each part prints a line that follows from all it has built.
'use strict';
const {createHash, pbkdf2Sync, generateKeyPairSync, createSign, createVerify} = require('crypto');
const {spawnSync} = require('child_process');
const {Worker, isMainThread, workerData, parentPort} = require('worker_threads');
const zlib = require('zlib');
const fs = require('fs');

function generator(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
}
const digest = (data) => createHash('sha256').update(data).digest('hex');

function build(seed, count) {
  const next = generator(seed);
  const all = [];
  for (let i = 0; i < count; ++i) {
    all.push({id: i, name: 'x'.repeat(next(50)) + next(1e6), list: Array.from({length: next(8)}, () => next(1000))});
  }
  return all;
}

if (!isMainThread) {
  const buffers = [];
  for (let i = 0; i < 200; ++i) buffers.push(Buffer.alloc(1000 * (1 + i % 90), i));
  const text = JSON.stringify(build(workerData, 20000));
  parentPort.postMessage(digest(text) + digest(Buffer.concat(buffers)));
} else if (process.argv[2] === 'child') {
  process.stdout.write(digest(JSON.stringify(build(99, 30000))) + '\n');
} else {
  main();
}

async function main() {
  const data = build(1, 100000);
  const text = JSON.stringify(data);
  console.log('json', text.length, digest(JSON.stringify(JSON.parse(text))));

  const map = new Map();
  for (const item of data) map.set(item.name, (map.get(item.name) || []).concat(item.list));
  for (const key of [...map.keys()]) if (key.length % 3 === 0) map.delete(key);
  console.log('map', map.size, digest([...map.keys()].sort().join()));

  for (const [pack, unpack] of [[zlib.gzipSync, zlib.gunzipSync], [zlib.brotliCompressSync, zlib.brotliDecompressSync]]) {
    const options = pack === zlib.brotliCompressSync ? {params: {[zlib.constants.BROTLI_PARAM_QUALITY]: 5}} : {};
    const packed = pack(text, options);
    console.log('zlib', packed.length, digest(unpack(packed)));
  }

  const {privateKey, publicKey} = generateKeyPairSync('ec', {namedCurve: 'P-256'});
  const signature = createSign('SHA256').update(text).sign(privateKey);
  console.log('crypto', createVerify('SHA256').update(text).verify(publicKey, signature),
              pbkdf2Sync('secret', 'salt', 20000, 64, 'sha512').toString('hex'));

  const workers = await Promise.all([1, 2, 3, 4, 5, 6].map((seed) => new Promise((resolve, reject) => {
    new Worker(__filename, {workerData: seed}).once('message', resolve).once('error', reject);
  })));
  for (const line of workers) console.log('worker', line);

  const files = Array.from({length: 100}, (_, i) => `f${i}`);
  await Promise.all(files.map((name, i) => fs.promises.writeFile(name, Buffer.alloc(20000 + 100 * i, i))));
  const contents = await Promise.all(files.map((name) => fs.promises.readFile(name)));
  console.log('files', digest(Buffer.concat(contents)));

  const child = spawnSync(process.execPath, [__filename, 'child'], {encoding: 'utf8'});
  console.log('child', child.status, child.stdout.trim());
}
