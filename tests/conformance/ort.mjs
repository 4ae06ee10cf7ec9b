// The answer key: runs a model with onnxruntime (npm onnxruntime-node, CPU) on .npy inputs and writes its outputs as .npy.
// usage: node ort.mjs NODE_MODULES MODEL.onnx OUTPUT_DIR NAME=FILE.npy...      (run by tests/conformance/models.sh)
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';

const [modules, model, outputDir, ...bindings] = process.argv.slice(2);
const ort = createRequire(path.resolve(modules) + '/')('onnxruntime-node');

const types = {
  '<f4': ['float32', Float32Array], '<f8': ['float64', Float64Array], '<i4': ['int32', Int32Array],
  '<i8': ['int64', BigInt64Array], '|u1': ['uint8', Uint8Array], '|i1': ['int8', Int8Array], '|b1': ['bool', Uint8Array],
};

function readNpy(file) {
  const bytes = fs.readFileSync(file);
  const headerBytes = bytes[6] === 1 ? bytes.readUInt16LE(8) : bytes.readUInt32LE(8);
  const start = (bytes[6] === 1 ? 10 : 12) + headerBytes;
  const header = bytes.toString('latin1', 10, start);
  const [, descr] = /'descr':\s*'([^']+)'/.exec(header);
  const dims = /'shape':\s*\(([^)]*)\)/.exec(header)[1].split(',').map((s) => s.trim()).filter(Boolean).map(Number);
  const [name, Type] = types[descr];
  const data = bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + bytes.length);
  return new ort.Tensor(name, new Type(data), dims);
}

function writeNpy(file, tensor) {
  const [descr] = Object.entries(types).find(([, [name]]) => name === tensor.type);
  const shape = tensor.dims.length === 1 ? `${tensor.dims[0]},` : tensor.dims.join(', ');
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape}), }`;
  header += ' '.repeat((64 - ((10 + header.length + 1) % 64)) % 64) + '\n';
  const prefix = Buffer.alloc(10);
  prefix.write('\x93NUMPY\x01\x00', 'latin1');
  prefix.writeUInt16LE(header.length, 8);
  const data = Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
  fs.writeFileSync(file, Buffer.concat([prefix, Buffer.from(header, 'latin1'), data]));
}

const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 2, logSeverityLevel: 3 });
const feeds = Object.fromEntries(bindings.map((b) => [b.slice(0, b.indexOf('=')), readNpy(b.slice(b.indexOf('=') + 1))]));
const outputs = await session.run(feeds);
fs.mkdirSync(outputDir, { recursive: true });
for (const name of session.outputNames) writeNpy(path.join(outputDir, name.replaceAll('/', '_') + '.npy'), outputs[name]);
