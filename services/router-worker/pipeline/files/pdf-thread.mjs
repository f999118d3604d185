import { parentPort } from 'node:worker_threads';
import { getDocumentProxy } from 'unpdf';

/** The thread of a process that reads PDFs (pdf-process.mjs): it may be busy, or die, at any step. */
const PIECE_CHARS = 64 * 1_024;

const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);
/** @param {import('./pdf-messages.ts').FromReader} message */
const report = (message) => port.postMessage(message);

// The library warns of what files contain.
for (const method of /** @type {const} */ (['log', 'info', 'warn', 'error', 'debug'])) console[method] = () => {};
port.on('message', (/** @type {import('./pdf-messages.ts').ToReader} */ asked) => void read(asked));
report({ type: 'ready' });

/** @param {import('./pdf-messages.ts').ToReader} asked */
async function read({ bytes, pages, textChars }) {
  try {
    const pdf = await getDocumentProxy(bytes, { disableFontFace: true, useSystemFonts: false, maxImageSize: 1, verbosity: 0 });
    if (pdf.numPages > pages) return report({ type: 'refused', reason: 'pages' });
    let chars = 0;
    for (let number = 1; number <= pdf.numPages; number += 1) {
      const page = await pdf.getPage(number);
      for await (const text of textsOf(page)) {
        chars += text.length;
        if (chars > textChars) return report({ type: 'refused', reason: 'text' });
        report({ type: 'text', text });
      }
      page.cleanup();
    }
    await pdf.destroy();
    report({ type: 'end', pages: pdf.numPages });
  } catch (error) {
    report({ type: 'refused', reason: error instanceof Error && error.name === 'PasswordException' ? 'encrypted' : 'broken' });
  }
}

/**
 * The text of a page in pieces, in the order of its content.
 *
 * @param {import('unpdf/pdfjs').PDFPageProxy} page
 */
async function* textsOf(page) {
  const reader = page.streamTextContent().getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    for (const item of value.items) if ('str' in item) text += item.hasEOL ? `${item.str}\n` : item.str;
    if (text.length < PIECE_CHARS) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield `${text}\n`;
}
