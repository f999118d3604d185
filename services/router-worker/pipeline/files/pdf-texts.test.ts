import { deflateSync } from 'node:zlib';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { ItemAbortController } from '#services/work/item-signal.ts';
import { compressed, encryptedPdf, pagesOf, pdfOf, scannedPdf, showing, streamOf, textPdf } from '../test-support/pdf-files.ts';
import { PdfProcesses, type pdfLimits } from './pdf-texts.ts';

const UNBOUNDED_MS = 600_000;
const opened: PdfProcesses[] = [];
function reader(limits: Partial<typeof pdfLimits> = {}): PdfProcesses {
  const texts = new PdfProcesses({ timeMs: UNBOUNDED_MS, processes: 1, ...limits });
  opened.push(texts);
  return texts;
}
const texts = reader();
const read = (file: Buffer, from = texts) => from.read(file, new ItemAbortController());

afterAll(async () => {
  for (const one of opened) await one.close();
});

const catalogue = '<< /Type /Catalog /Pages 2 0 R >>';
const page = '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >>';
const font = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>';
/** Each operator makes the parser's next one slower. */
const endless = () => pagesOf([streamOf('q '.repeat(10_000_000))]);

describe('the text of a PDF', () => {
  it('is that of its pages, in order, cleaned', async () => {
    const file = textPdf(['Invoice 7', 'to Ada'], ['Second\x00 page'], []);
    expect(await read(file)).toEqual({ type: 'read', pages: 3, text: 'Invoice 7\nto Ada\nSecond page' });
  });

  it('is found in compressed pages, and is empty where the file has pictures alone', async () => {
    expect(await read(pagesOf([compressed(showing(['packed']))]))).toEqual({ type: 'read', pages: 1, text: 'packed' });
    expect(await read(scannedPdf())).toEqual({ type: 'read', pages: 1, text: '' });
  });
});

describe('a hostile PDF', () => {
  const loop = (kids: string, kid: string) =>
    pdfOf([catalogue, `<< /Type /Pages /Kids [${kids}] /Count 400 >>`, `<< /Type /Pages /Kids [${kid}] /Count 400 >>`]);
  const inItself = () =>
    pdfOf([
      catalogue,
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /Resources 6 0 R /Contents 4 0 R >>',
      streamOf('/X Do'),
      streamOf('/X Do /X Do', '/Type /XObject /Subtype /Form /Resources 6 0 R'),
      '<< /XObject << /X 5 0 R >> >>',
    ]);
  const counting = (kids: string) => pdfOf([catalogue, `<< /Type /Pages /Kids [${kids}] /Count 100000 >>`, page, font, streamOf(showing(['x']))]);

  it.each<[string, () => Buffer, object]>([
    ['that is encrypted', encryptedPdf, { reason: 'encrypted' }],
    ['that is cut off in a page', () => textPdf(['one'], ['two'.repeat(1_000)]).subarray(0, 1_500), { reason: 'broken' }],
    ['that is cut off in its head', () => textPdf(['one']).subarray(0, 40), { reason: 'broken' }],
    ['whose tree of pages contains itself', () => loop('2 0 R', '2 0 R'), { reason: 'broken' }],
    ['whose tree of pages is a cycle', () => loop('3 0 R 3 0 R', '2 0 R 2 0 R'), { reason: 'broken' }],
    ['with a form that draws itself', inItself, { text: '' }],
    ['with 100,000 pages', () => counting('3 0 R '.repeat(100_000)), { reason: 'pages' }],
    ['that only says that it has 100,000 pages', () => counting('3 0 R'), { text: 'x', pages: 1 }],
    ['with lists in lists', () => pagesOf([streamOf('['.repeat(1_000_000))]), { text: '' }],
    [
      'that says it has a billion objects',
      () => Buffer.from(textPdf(['one']).toString('latin1').replace('/Size 6', '/Size 999999999'), 'latin1'),
      { text: 'one' },
    ],
    ['that says it packs a billion objects', () => pdfOf([catalogue, streamOf('1 0', '/Type /ObjStm /N 999999999 /First 4')]), { reason: 'broken' }],
  ])('%s comes to its end', async (_, file, result) => {
    expect(await read(file())).toMatchObject(result);
  });

  it('with more text than the limit is refused', async () => {
    const lines = showing(Array.from({ length: 40 }, () => 'all work and no play'));
    const bomb = pagesOf(Array.from({ length: 150 }, () => compressed(lines)));
    expect(await read(bomb, reader({ textChars: 100_000 }))).toEqual({ type: 'refused', reason: 'text' });
  });

  it.each<[string, () => Buffer]>([
    ['is inflated twice to 300 MB', () => pagesOf([streamOf(deflateSync(deflateSync(Buffer.alloc(300_000_000, ' '))), '/Filter [/FlateDecode /FlateDecode]')])],
    ['has a list of 30 million numbers', () => pagesOf([compressed(`BT /F1 12 Tf [${'1 '.repeat(30_000_000)}] TJ ET`)])],
  ])('DESIGN 8: that %s ends its own process alone', async (_, file) => {
    const bounded = reader({ heapMib: 96, memoryBytes: 160 * 1_024 * 1_024 });
    expect(await read(file(), bounded)).toEqual({ type: 'refused', reason: 'memory' });
    expect(await read(textPdf(['next']), bounded)).toMatchObject({ text: 'next' });
  });

  it('DESIGN 8: that takes for ever is ended after its time, and the next one is read', async () => {
    const bounded = reader({ timeMs: 3_000, memoryBytes: 4 * 1_024 ** 3, heapMib: 2_048 });
    expect(await read(endless(), bounded)).toEqual({ type: 'refused', reason: 'time' });
    expect(await read(textPdf(['next']), reader())).toMatchObject({ text: 'next' });
  });
});

describe('the group of processes that read PDFs', () => {
  const slow = { memoryBytes: 4 * 1_024 ** 3, heapMib: 2_048 };
  const unavailable = expect.objectContaining({ code: 'router.plugin_unavailable' });

  it('DESIGN 8: reads so many files at once as are allowed, in their order; more than may wait are refused', async () => {
    const bounded = reader({ ...slow, waiting: 1 });
    const first = new ItemAbortController();
    const reading = bounded.read(endless(), first);
    const next = read(textPdf(['next']), bounded);
    await expect(read(textPdf(['third']), bounded)).rejects.toEqual(unavailable);
    first.abort(new Error('gone'));
    await expect(reading).rejects.toThrow('gone');
    expect(await next).toMatchObject({ text: 'next' });
  });

  it('lets a file wait no longer when its call is aborted, and no more bytes than are allowed', async () => {
    const bounded = reader({ ...slow, waitingBytes: 2_000 });
    const first = new ItemAbortController();
    const reading = bounded.read(endless(), first);
    const waiting = new ItemAbortController();
    const second = bounded.read(textPdf(['second']), waiting);
    await expect(read(Buffer.alloc(2_000), bounded)).rejects.toEqual(unavailable);
    waiting.abort(new Error('no longer'));
    await expect(second).rejects.toThrow('no longer');
    first.abort(new Error('gone'));
    await expect(reading).rejects.toThrow('gone');
  });

  it('ends with the worker: what is read or waits fails, and so does what comes later', async () => {
    const closing = reader(slow);
    const all = [read(endless(), closing), read(textPdf(['waits']), closing)].map((one) => expect(one).rejects.toEqual(unavailable));
    await closing.close();
    await Promise.all(all);
    await expect(read(textPdf(['late']), closing)).rejects.toEqual(unavailable);
  });

  it('starts another one when one has ended without a file', async () => {
    const dying = reader({ idleMs: 1 });
    expect(await read(textPdf(['one']), dying)).toMatchObject({ text: 'one' });
    await vi.waitFor(async () => expect(await read(textPdf(['two']), dying)).toMatchObject({ text: 'two' }), { timeout: 60_000 });
  });
});
