// Loaded before a program (`node --import`) where no small disk can be mounted: writes of its database fail with ENOSPC while a flag file exists.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const { openSync, writeSync, ftruncateSync } = fs;
const flag = process.env.EDGE_DISK_FULL_FLAG ?? '';
/** Files of the database that are open for writing, by their descriptor. @type {Map<number, string>} */
const paths = new Map();

/** The content of the flag file is a part of the paths that can't be written. @param {number} descriptor */
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
