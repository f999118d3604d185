import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { cacheControlOf } from '../anthropic/to-blocks.ts';
import { type Marked, type MediaBlock, marked, type TextBlock } from './blocks.ts';

type Content = ChatMessage['content'];
type ContentItem = Exclude<Content, string | null | undefined>[number];

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[^,;]*)*?(;base64)?,/i;
const WEB_URL = /^https?:\/\//i;
const IMAGE_FORMATS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpeg',
  'image/jpg': 'jpeg',
  'image/gif': 'gif',
  'image/webp': 'webp',
};
const OFFICE = 'application/vnd.openxmlformats-officedocument';
const DOCUMENT_FORMATS: Readonly<Record<string, string>> = {
  'application/pdf': 'pdf',
  'text/plain': 'txt',
  'text/markdown': 'md',
  'text/html': 'html',
  'text/csv': 'csv',
  'application/msword': 'doc',
  'application/vnd.ms-excel': 'xls',
  [`${OFFICE}.wordprocessingml.document`]: 'docx',
  [`${OFFICE}.spreadsheetml.sheet`]: 'xlsx',
};
/** Of a document's name: the API refuses longer ones. */
export const MAX_NAME_CHARS = 200;

/** @throws `router.provider_refused` naming an item that the API has no block for */
export function toContent(content: Content, path: string): Marked<TextBlock | MediaBlock>[] {
  if (typeof content === 'string') return textBlocks(content);
  return (content ?? []).flatMap((item, index) => blocksOf(item, `${path}[${index}]`));
}

/** The API refuses texts of white space alone. */
export function textBlocks(text: string): Marked<TextBlock>[] {
  return text.trim() === '' ? [] : [{ item: { text } }];
}

function blocksOf(item: ContentItem, path: string): Marked<TextBlock | MediaBlock>[] {
  const mark = cacheControlOf(item);
  switch (item.type) {
    case 'text':
      return textBlocks(item.text).map(({ item: block }) => marked(block, mark));
    case 'image_url':
      return [marked(imageOf(item.image_url.url, `${path}.image_url.url`), mark)];
    case 'file':
      return [marked(documentOf(item.file, `${path}.file`), mark)];
    case 'input_audio':
    case 'input_video':
    case 'video_url':
      throw refusal(path, `items of the type ${item.type} are not supported by this provider`);
  }
}

function imageOf(url: string, path: string): MediaBlock {
  if (WEB_URL.test(url)) return { image: { source: { url } } };
  const { mediaType, bytes } = bytesIn(url, path);
  const format = IMAGE_FORMATS[mediaType];
  if (format === undefined) throw refusal(path, 'must be a PNG, JPEG, GIF or WebP');
  return { image: { format, source: { bytes } } };
}

function documentOf({ filename, file_data: data }: Record<string, unknown>, path: string): MediaBlock {
  if (typeof data !== 'string') throw refusal(path, 'must have file_data');
  const { mediaType, bytes } = bytesIn(data, `${path}.file_data`);
  const format = DOCUMENT_FORMATS[mediaType];
  if (format === undefined) throw refusal(`${path}.file_data`, `files of the type ${mediaType} are not supported by this provider`);
  return { document: { format, name: nameOf(filename), source: { bytes } } };
}

function bytesIn(url: string, path: string): { mediaType: string; bytes: string } {
  const [head, mediaType = 'text/plain', base64] = DATA_URL.exec(url) ?? [];
  if (head === undefined) throw refusal(path, 'must be a data URL');
  const data = url.slice(head.length);
  return { mediaType: mediaType.toLowerCase(), bytes: base64 === undefined ? Buffer.from(decoded(data, path)).toString('base64') : data };
}

function decoded(text: string, path: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refusal(path, 'is not a valid data URL');
  }
}

/** Without extension, of the characters that the API allows: letters, digits, single spaces, hyphens, parentheses and square brackets. */
function nameOf(filename: unknown): string {
  const stem = typeof filename === 'string' ? filename.slice(0, MAX_NAME_CHARS).replace(/\.\w{1,5}$/, '') : '';
  const name = stem.replace(/[^A-Za-z0-9()[\]-]+/g, ' ').trim();
  return name === '' ? 'document' : name;
}

export function refusal(param: string, words: string): SwitchyardError {
  return new SwitchyardError('router.provider_refused', `${param}: ${words}`, { details: { param } });
}
