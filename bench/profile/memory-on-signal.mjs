import { appendFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { basename, dirname, join } from 'node:path';

/**
 * Loaded into a process before its program: each SIGUSR2 collects all garbage and appends what is left to a file, one line of JSON. So memory that is in use
 * can be told from memory that is only not collected yet.
 */
const session = new Session();
session.connect();
const name = basename(dirname(process.argv[1] ?? 'unknown'));
const path = join(process.env.BENCH_MEMORY_FOLDER ?? '.', `${name}.jsonl`);

process.on('SIGUSR2', () => void note());

async function note() {
  const { rss } = process.memoryUsage();
  await session.post('HeapProfiler.collectGarbage');
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  appendFileSync(path, `${JSON.stringify({ rss, heapUsed, external, arrayBuffers })}\n`);
}
