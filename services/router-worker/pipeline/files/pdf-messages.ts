/** Why a file's text can't be read: what the file is, or which of the limits it exceeds. */
export type PdfRefusal = 'encrypted' | 'broken' | 'pages' | 'text' | 'time' | 'memory';

/** The end of one file. */
export type PdfEnd = { type: 'end'; pages: number } | { type: 'refused'; reason: PdfRefusal };

export type FromReader = { type: 'ready' } | { type: 'text'; text: string } | PdfEnd;

/** One file, and its limits. */
export interface ToReader {
  bytes: Uint8Array;
  pages: number;
  /** Of all pages. */
  textChars: number;
  /** By which the process may grow. */
  memoryBytes: number;
}
