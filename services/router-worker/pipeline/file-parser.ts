import type { FileAnnotation } from '#shared/contracts/router/chat-completion.ts';
import { usdOfNano } from '#shared/credit/nano-usd.ts';
import { MAX_FILE_PAGES } from '#shared/credit/parsed-files.ts';
import type { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import { type AskedParsing, askedParsing, BUILT_IN_PARSERS } from '#shared/prompts/asked-parsing.ts';
import type { CallSignal } from '../call-signal.ts';
import { unavailable } from './engine-client.ts';
import { bytesOf, type FileBytes, invalidFile, tooLarge } from './files/file-bytes.ts';
import { type ContentItem, MAX_FILES, type PdfItem, pdfItemsIn, withItems } from './files/file-items.ts';
import type { OcrEngine } from './files/ocr-engine.ts';
import type { PdfRefusal } from './files/pdf-messages.ts';
import { type PdfReading, pdfLimits } from './files/pdf-texts.ts';
import { charsIn, fileAnnotationOf, filesReadBefore, itemsOf } from './files/read-files.ts';
import type { FileTools, PluginStage, StageContext, StagedCall } from './stage.ts';

/** Of the pictures of all files of a call, as data URLs: its caller gets them back. */
const MAX_PICTURE_CHARS = 4 * 1_024 * 1_024;
/** What models are sent of a file without any. */
const NO_TEXT = '(The file has no text that could be read.)';

/**
 * Puts the text of PDFs in their place. Without an engine in the request the endpoint that would be tried first decides: one that reads PDFs gets them as they
 * are, and so do all others that take files; their text is for those that are tried after these. What an earlier answer of the conversation has read is not
 * read again.
 */
export const fileParser: PluginStage = {
  request: async (staged, context) => {
    const asked = askedParsing(staged.request);
    if (asked === null) return staged;
    const items = pdfItemsIn(staged.request);
    if (items.length === 0) return staged;
    const isNative = asked.engine === 'native';
    if (isNative && !context.takesFiles(staged.request)) {
      throw invalidFile(`plugins[${asked.at}].pdf.engine`, 'is "native", and no endpoint of the models takes files');
    }
    if (isNative || (asked.engine === null && context.before === undefined && context.candidatesOf(staged.request)[0]?.readsPdf === true)) {
      context.report?.({ type: 'plugin', name: 'file-parser', summary: 'left to the endpoint', data: { engine: 'native', files: items.length } });
      return { ...staged, hasUnreadFiles: !isNative };
    }
    if (items.length > MAX_FILES) throw invalidFile(context.messagesField, `have more than ${MAX_FILES} PDFs`);
    if (context.files === null) {
      if (asked.at === null) return staged;
      throw unavailable('pdf-text', 'it is not there');
    }
    return await parsed(staged, items, readerFor(asked, context.files, context), context); // no fail point: inside
  },
};

/** Of one file. */
interface Reading {
  text: string;
  /** Data URLs. */
  pictures: readonly string[];
  costNano: number;
}

interface FileReader {
  engine: string;
  /** Whether a file at an address that is no PDF is refused: the request asks for its text. Else it stays as it is. */
  refusesOthers: boolean;
  getter: FileTools['getter'];
  /** @throws `request.invalid` or `request.too_large` naming the file, `router.plugin_unavailable`; the signal's reason */
  read(file: FileBytes, path: string): Promise<Reading>;
}

function readerFor({ at, engine }: AskedParsing, { texts, getter }: FileTools, { engines: { ocr }, signal }: StageContext): FileReader {
  if (engine === null || BUILT_IN_PARSERS.has(engine))
    // no fail point: caller
    return { engine: 'pdf-text', refusesOthers: at !== null, getter, read: async ({ bytes }, path) => textOf(await texts.read(bytes, signal), path) };
  // Checked before: a call never passes for lack of an engine.
  if (ocr === null || ocr.name !== engine) throw unavailable(engine, 'it is not configured');
  return { engine, refusesOthers: true, getter, read: ({ bytes }, path) => recognised(ocr, bytes, path, signal) };
}

async function parsed(staged: StagedCall, items: readonly PdfItem[], reader: FileReader, context: StageContext): Promise<StagedCall> {
  const known = new Map(filesReadBefore(staged.request));
  const replacements = new Map<ContentItem, ContentItem[]>();
  const read: FileAnnotation[] = [];
  let chars = 0;
  let costNano = 0;
  let pictureChars = 0;
  // One after the other: a call holds one file's bytes, and takes one turn.
  for (const item of items) {
    const file = await bytesOf(item, reader.getter, context.signal); // no fail point: reads
    if ('refusal' in file) {
      if (reader.refusesOthers) throw file.refusal;
      continue;
    }
    let annotation = known.get(file.hash);
    if (annotation === undefined) {
      const reading = await reader.read(file, item.path);
      failPoint('file.read');
      costNano += reading.costNano;
      const pictures = reading.pictures.filter((url) => {
        pictureChars += url.length;
        return pictureChars <= MAX_PICTURE_CHARS;
      });
      annotation = fileAnnotationOf(file.hash, item.filename, [
        { type: 'text', text: reading.text === '' ? NO_TEXT : reading.text },
        ...pictures.map((url) => ({ type: 'image_url' as const, image_url: { url } })),
      ]);
      known.set(file.hash, annotation);
      read.push(annotation);
      context.fileRead?.(annotation);
    }
    chars += charsIn(annotation);
    if (chars > pdfLimits.textChars) throw tooLarge(context.messagesField, `have files with more than ${pdfLimits.textChars} characters of text`);
    replacements.set(item.item, itemsOf(annotation, item.item));
  }
  context.report?.({
    type: 'plugin',
    name: 'file-parser',
    summary: `files=${replacements.size}`,
    data: { engine: reader.engine, files: replacements.size, read: read.length },
    ...(costNano > 0 && { cost_usd: usdOfNano(costNano) }),
  });
  const placed = readableItems(staged, replacements, context);
  return {
    ...staged,
    request: withItems(staged.request, placed),
    annotations: [...staged.annotations, ...read],
    costNano: staged.costNano + costNano,
    fromFiles: new Set([...staged.fromFiles, ...[...placed.values()].flat()]),
  };
}

/** Without pictures where no endpoint takes them: the text is answered all the same. */
function readableItems(
  { request }: StagedCall,
  replacements: ReadonlyMap<ContentItem, ContentItem[]>,
  context: StageContext,
): ReadonlyMap<ContentItem, ContentItem[]> {
  const hasPictures = [...replacements.values()].some((items) => items.some(({ type }) => type === 'image_url'));
  if (!hasPictures || context.candidatesOf(withItems(request, replacements)).length > 0) return replacements;
  return new Map([...replacements].map(([item, items]) => [item, items.filter(({ type }) => type !== 'image_url')]));
}

function textOf(reading: PdfReading, path: string): Reading {
  if (reading.type === 'refused') throw refusalOf(reading.reason, path);
  return { text: reading.text, pictures: [], costNano: 0 };
}

async function recognised(ocr: OcrEngine, bytes: Buffer, path: string, signal: CallSignal): Promise<Reading> {
  const reading = await ocr.read(bytes, signal); // no fail point: caller
  if (reading === null) throw invalidFile(path, `can't be read by ${ocr.name}`);
  if (reading.pages > MAX_FILE_PAGES) throw refusalOf('pages', path);
  if (reading.text.length > pdfLimits.textChars) throw refusalOf('text', path);
  return { text: reading.text, pictures: reading.pictures, costNano: reading.pages * ocr.priceNano };
}

function refusalOf(reason: PdfRefusal, path: string): SwitchyardError {
  const { pages, textChars, timeMs, memoryBytes } = pdfLimits;
  switch (reason) {
    case 'encrypted':
      return invalidFile(path, 'is encrypted: it needs a password');
    case 'broken':
      return invalidFile(path, 'is not a PDF that can be read');
    case 'pages':
      return tooLarge(path, `has more than ${pages} pages`);
    case 'text':
      return tooLarge(path, `has more than ${textChars} characters of text`);
    case 'time':
      return tooLarge(path, `takes more than ${timeMs / 1_000} s to read`);
    case 'memory':
      return tooLarge(path, `takes more than ${memoryBytes / (1_024 * 1_024)} MiB of memory to read`);
  }
}
