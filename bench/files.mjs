import { monitorEventLoopDelay } from 'node:perf_hooks';
import { prepare } from '../scripts/prepare.mjs';

const PAGES = 100;
const LINES = 50;
const FILES = 20;
const NANOS_PER_MS = 1_000_000;

/** Prints how late the event loop of a router worker is while it has PDFs read, beside an idle one, and how long a file takes: `node bench/files.mjs`. */
async function main() {
  await prepare({ build: true });
  const { PdfProcesses } = await modules();
  const file = pdf();
  const texts = new PdfProcesses();
  const signal = new AbortController().signal;
  // Starts a process.
  const first = await timed(() => texts.read(file, signal));
  const idle = await lagDuring(() => new Promise((resolve) => setTimeout(resolve, 2_000)));
  let millis = 0;
  const reading = await lagDuring(async () => {
    for (let at = 0; at < FILES; at += 1) {
      const { ms, result } = await timed(() => texts.read(file, signal));
      if (result.type !== 'read' || result.pages !== PAGES) throw new Error(`not read: ${JSON.stringify(result).slice(0, 100)}`);
      millis += ms;
    }
  });
  await texts.close();
  console.log(`a file of ${PAGES} pages, ${(file.byteLength / 1_024).toFixed(0)} KiB: ${(millis / FILES).toFixed(0)} ms, the first ${first.ms.toFixed(0)} ms`);
  for (const [name, lag] of /** @type {const} */ ([
    ['idle', idle],
    ['while files are read', reading],
  ])) {
    console.log(`event loop ${name}: p50 ${lag.p50.toFixed(1)} ms, p99 ${lag.p99.toFixed(1)} ms, most ${lag.most.toFixed(1)} ms late`);
  }
}

/** @template Result @param {() => Promise<Result>} work */
async function timed(work) {
  const startedMs = performance.now();
  const result = await work();
  return { result, ms: performance.now() - startedMs };
}

/** As `nodejs_eventloop_lag_p99` is measured. @param {() => Promise<unknown>} work */
async function lagDuring(work) {
  const delays = monitorEventLoopDelay({ resolution: 10 });
  delays.enable();
  await work();
  delays.disable();
  return { p50: delays.percentile(50) / NANOS_PER_MS, p99: delays.percentile(99) / NANOS_PER_MS, most: delays.max / NANOS_PER_MS };
}

/** Pages of 50 lines of 80 characters. */
function pdf() {
  const line = 'The quick brown fox jumps over the lazy dog, and what it found there is no secret.';
  const content = `BT /F1 10 Tf 14 TL 50 760 Td ${Array.from({ length: LINES }, (_, at) => `(${at} ${line}) Tj T*`).join('\n')} ET`;
  const kids = Array.from({ length: PAGES }, (_, at) => `${4 + 2 * at} 0 R`).join(' ');
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${PAGES} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
    ...Array.from({ length: PAGES }, (_, at) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + 2 * at} 0 R >>`,
      `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    ]).flat(),
  ];
  let text = '%PDF-1.7\n';
  const places = objects.map((object, index) => {
    const place = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(place).padStart(10, '0')} 00000 n \n`;
  });
  const start = text.length;
  const size = objects.length + 1;
  return Buffer.from(
    `${text}xref\n0 ${size}\n0000000000 65535 f \n${places.join('')}trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`,
    'latin1',
  );
}

async function modules() {
  const dist = (/** @type {string} */ path) => new URL(`../dist/${path}`, import.meta.url).href;
  /** @type {typeof import('../services/router-worker/pipeline/files/pdf-texts.ts')} */
  const { PdfProcesses } = await import(dist('services/router-worker/pipeline/files/pdf-texts.js'));
  return { PdfProcesses };
}

await main();
