import type { CallSignal } from '../../../services/router-worker/call-signal.ts';
import type { PdfReading } from '../../../services/router-worker/pipeline/files/pdf-texts.ts';
import { orAborted } from '../environment.ts';
import { FILE_TEXT } from './router-setup.ts';

const MOST_MS = 3_000;
const REFUSED = 0.1;

/** Stands for the processes that read PDFs: a file takes some time, or can not be read. Time and chance are those of the schedule. */
export class SimulatedTexts {
  read(_bytes: Uint8Array, signal: CallSignal): Promise<PdfReading> {
    const afterMs = Math.floor(Math.random() * MOST_MS);
    const reading: PdfReading = Math.random() < REFUSED ? { type: 'refused', reason: 'broken' } : { type: 'read', text: FILE_TEXT, pages: 1 };
    return orAborted(signal, new Promise((resolve) => setTimeout(() => resolve(reading), afterMs)));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
