// Loaded before a program (`node --import`): its database finds the disk full for as long as a file says so, where no small disk can be mounted.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const { openSync, writeSync, ftruncateSync } = fs;
const flag = process.env.EDGE_DISK_FULL_FLAG ?? '';
/** Files of the database that are open for writing, by their descriptor. @type {Map<number, string>} */
const paths = new Map();

/** The file says which files can't be written, as a part of their path. @param {number} descriptor */
function refuseIfFull(descriptor) {
  const path = paths.get(descriptor);
  if (path === undefined || !fs.existsSync(flag) || !path.includes(fs.readFileSync(flag, 'utf8'))) return;
  throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', errno: -28, syscall: 'write' });
}

fs.openSync = (path, ...rest) => {
  const descriptor = openSync(path, ...rest);
  if (String(path).includes('/database/')) paths.set(descriptor, String(path));
  else paths.delete(descriptor);
  return descriptor;
};
fs.writeSync = new Proxy(writeSync, {
  apply: (call, self, args) => {
    refuseIfFull(args[0]);
    return Reflect.apply(call, self, args);
  },
});
fs.ftruncateSync = new Proxy(ftruncateSync, {
  apply: (call, self, args) => {
    refuseIfFull(args[0]);
    return Reflect.apply(call, self, args);
  },
});
syncBuiltinESMExports();
