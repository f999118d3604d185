import { parentPort, workerData } from 'node:worker_threads';
import { readDocumentFile } from './read-document-file.ts';

/** A thread that reads one file, and ends. */
parentPort?.postMessage(await readDocumentFile(String(workerData)));
