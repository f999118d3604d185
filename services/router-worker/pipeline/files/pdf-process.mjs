import { writeFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

/**
 * A process that reads PDFs, started by pdf-process.ts. Its thread parses; this one watches: it ends the process when its memory has grown too much, or its
 * parent is gone. JavaScript, since Node runs no TypeScript: so it is the same from the sources and from the build.
 */
const WATCH_EVERY_MS = 20;
const YOUNG_HEAP_MIB = 16;
const STACK_MIB = 4;

// Where memory is short, the system's first choice; not where there is no such file.
try {
  writeFileSync('/proc/self/oom_score_adj', '1000');
} catch {}

/** @param {import('./pdf-messages.ts').FromReader} message */
const report = (message) => process.send?.(message);

/** Null: no file is read. @type {number | null} */
let mostBytes = null;
/** Of the process before its first file. */
let ownBytes = 0;

const [heapMib = ''] = process.argv.slice(2);
const thread = new Worker(new URL('./pdf-thread.mjs', import.meta.url), {
  resourceLimits: { maxOldGenerationSizeMb: Number(heapMib), maxYoungGenerationSizeMb: YOUNG_HEAP_MIB, stackSizeMb: STACK_MIB },
});
thread.on('message', (/** @type {import('./pdf-messages.ts').FromReader} */ message) => {
  if (message.type === 'ready') ownBytes = process.memoryUsage.rss();
  if (message.type === 'end' || message.type === 'refused') mostBytes = null;
  report(message);
});
thread.on('error', (error) => end('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'broken'));

process.on('message', (/** @type {import('./pdf-messages.ts').ToReader} */ asked) => {
  mostBytes = ownBytes + asked.memoryBytes;
  thread.postMessage(asked);
});
process.on('disconnect', () => process.exit());
// Of the whole process group: the parent drains, and ends this process itself.
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, () => {});
setInterval(() => {
  if (mostBytes !== null && process.memoryUsage.rss() > mostBytes) end('memory');
}, WATCH_EVERY_MS);

/** @param {'memory' | 'broken'} reason */
function end(reason) {
  mostBytes = null;
  process.send?.({ type: 'refused', reason }, () => process.kill(process.pid, 'SIGKILL'));
}
