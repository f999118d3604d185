import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

export type RequestPart = ContentPart & { thoughtSignature?: string };
type ContentPart =
  | { text: string }
  | { inlineData: { mimeType: string; data: string } }
  | { fileData: { fileUri: string; mimeType?: string } }
  | { functionCall: { id?: string; name: string; args: object } }
  | { functionResponse: { id?: string; name: string; response: object } };

type Content = ChatMessage['content'];
type ContentItem = Exclude<Content, string | null | undefined>[number];

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)(?:;[^,;]*)*?;base64,/i;

/** @throws `router.provider_refused` naming an item that the API has no part for */
export function toContentParts(content: Content, path: string): RequestPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ text: content }];
  return (content ?? []).flatMap((item, index) => partsOf(item, `${path}[${index}]`));
}

function partsOf(item: ContentItem, path: string): RequestPart[] {
  switch (item.type) {
    case 'text':
      return item.text === '' ? [] : [{ text: item.text }];
    case 'image_url':
      return [fileOf(item.image_url.url)];
    case 'input_audio':
      return [{ inlineData: { mimeType: `audio/${item.input_audio.format}`, data: item.input_audio.data } }];
    case 'input_video':
    case 'video_url': {
      const url = urlIn(item.video_url);
      if (url === null) throw refusal(path, 'must have video_url.url');
      return [fileOf(url)];
    }
    case 'file': {
      const { file_data: data, file_id: id } = item.file;
      const url = typeof data === 'string' ? data : id;
      if (typeof url !== 'string') throw refusal(`${path}.file`, 'must have file_data or file_id');
      return [fileOf(url)];
    }
  }
}

/** An address is sent as it is: a video of YouTube, or a file of the vendor's store. Pictures were fetched before. */
function fileOf(url: string): RequestPart {
  const [head, mimeType] = DATA_URL.exec(url) ?? [];
  if (head === undefined || mimeType === undefined) return { fileData: { fileUri: url } };
  return { inlineData: { mimeType: mimeType.toLowerCase(), data: url.slice(head.length) } };
}

function urlIn(value: unknown): string | null {
  return typeof value === 'object' && value !== null && 'url' in value && typeof value.url === 'string' ? value.url : null;
}

function refusal(param: string, words: string): SwitchyardError {
  return new SwitchyardError('router.provider_refused', `${param}: ${words}`, { details: { param } });
}
