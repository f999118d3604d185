import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type FileRead, readDocumentFile } from './read-document-file.ts';

/** Beside the process's own. Aliases are bounded, so that what a file can need is too. */
const HEAP_MIB = 512;

/**
 * As `readDocumentFile`, in a thread: parsing a large file takes seconds, in which the process would serve no request. From sources, as in tests, in this
 * thread: Node's threads run no TypeScript.
 * @param until ends the thread
 * @throws once the signal is aborted
 */
export async function readInThread(path: string, until: AbortSignal): Promise<FileRead> {
  until.throwIfAborted();
  const extension = extname(import.meta.url);
  if (extension === '.ts') return readDocumentFile(path);
  const thread = new Worker(new URL(`./read-document-thread${extension}`, import.meta.url), {
    workerData: path,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  });
  thread.unref();
  try {
    const [read] = await once(thread, 'message', { signal: until });
    return read as FileRead;
  } finally {
    await thread.terminate();
  }
}
