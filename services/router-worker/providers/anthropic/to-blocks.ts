import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CacheControl, MediaBlock, Source, TextBlock } from './blocks.ts';

type Content = ChatMessage['content'];
type ContentItem = Exclude<Content, string | null | undefined>[number];

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[^,;]*)*?(;base64)?,/i;
const WEB_URL = /^https?:\/\//i;

/** @throws `router.provider_refused` naming an item that the API has no block for */
export function toBlocks(content: Content, path: string): (TextBlock | MediaBlock)[] {
  if (typeof content === 'string') return textBlocks(content);
  return (content ?? []).flatMap((item, index) => blocksOf(item, `${path}[${index}]`));
}

/** The API refuses texts of white space alone. */
export function textBlocks(text: string, mark?: CacheControl): TextBlock[] {
  return text.trim() === '' ? [] : [{ type: 'text', text, ...(mark === undefined ? {} : { cache_control: mark }) }];
}

function blocksOf(item: ContentItem, path: string): (TextBlock | MediaBlock)[] {
  const mark = cacheControlOf(item);
  switch (item.type) {
    case 'text':
      return textBlocks(item.text, mark);
    case 'image_url':
      return [{ type: 'image', source: sourceOf(item.image_url.url, `${path}.image_url.url`), ...(mark === undefined ? {} : { cache_control: mark }) }];
    case 'file':
      return [{ ...documentOf(item.file, `${path}.file`), ...(mark === undefined ? {} : { cache_control: mark }) }];
    case 'input_audio':
    case 'input_video':
    case 'video_url':
      throw refusal(path, `items of the type ${item.type} are not supported by this provider`);
  }
}

function documentOf(file: Record<string, unknown>, path: string): Extract<MediaBlock, { type: 'document' }> {
  const { filename, file_data: data, file_id: id } = file;
  const title = typeof filename === 'string' && filename !== '' ? { title: filename } : {};
  if (typeof data === 'string') return { type: 'document', source: sourceOf(data, `${path}.file_data`), ...title };
  if (typeof id === 'string') return { type: 'document', source: { type: 'file', file_id: id }, ...title };
  throw refusal(path, 'must have file_data or file_id');
}

function sourceOf(url: string, path: string): Source {
  if (WEB_URL.test(url)) return { type: 'url', url };
  const [head, type = 'text/plain', base64] = DATA_URL.exec(url) ?? [];
  if (head === undefined) throw refusal(path, 'must be an http(s) URL or a data URL');
  const data = url.slice(head.length);
  const mediaType = type.toLowerCase();
  if (mediaType === 'text/plain') return { type: 'text', media_type: mediaType, data: base64 === undefined ? decoded(data, path) : fromBase64(data) };
  if (base64 === undefined) throw refusal(path, 'must be a data URL in base64');
  // Some clients write `jpg`, which is no registered type.
  return { type: 'base64', media_type: mediaType === 'image/jpg' ? 'image/jpeg' : mediaType, data };
}

function decoded(text: string, path: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refusal(path, 'is not a valid data URL');
  }
}

function fromBase64(data: string): string {
  return Buffer.from(data, 'base64').toString('utf8');
}

/** The mark of an item or tool; undefined: none. */
export function cacheControlOf(item: object): CacheControl | undefined {
  if (!('cache_control' in item) || typeof item.cache_control !== 'object' || item.cache_control === null) return undefined;
  const { cache_control: mark } = item;
  const ttl = 'ttl' in mark && (mark.ttl === '5m' || mark.ttl === '1h') ? { ttl: mark.ttl } : {};
  return { type: 'ephemeral', ...(ttl as Pick<CacheControl, 'ttl'>) };
}

function refusal(param: string, words: string): SwitchyardError {
  return new SwitchyardError('router.provider_refused', `${param}: ${words}`, { details: { param } });
}
