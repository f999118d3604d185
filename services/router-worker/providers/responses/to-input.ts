import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type ReasoningItem, toReasoningItems } from './to-reasoning-items.ts';

type InputContent =
  | { type: 'input_text'; text: string }
  | { type: 'input_image'; image_url: string; detail: string }
  | { type: 'input_file'; filename?: string; file_data?: string; file_url?: string; file_id?: string }
  | { type: 'input_audio'; input_audio: { data: string; format: string } };

export type InputItem =
  | { role: 'developer' | 'user'; content: InputContent[] }
  | { role: 'assistant'; content: { type: 'output_text'; text: string }[] }
  | { type: 'function_call'; call_id: string; name: string; arguments: string }
  | { type: 'function_call_output'; call_id: string; output: string | InputContent[] }
  | ReasoningItem;

type AssistantMessage = Extract<ChatMessage, { role: 'assistant' }>;
type ContentItem = Exclude<ChatMessage['content'], string | null | undefined>[number];

const WEB_URL = /^https?:\/\//i;

/** @throws `router.provider_refused` naming an item that the API has no form for */
export function toInput(messages: readonly ChatMessage[]): InputItem[] {
  return messages.flatMap((message, index) => itemsOf(message, `messages[${index}].content`));
}

function itemsOf(message: ChatMessage, path: string): InputItem[] {
  switch (message.role) {
    case 'assistant':
      return answerItems(message);
    case 'tool': {
      const { content, tool_call_id: id } = message;
      return [{ type: 'function_call_output', call_id: id, output: typeof content === 'string' ? content : contentOf(content, path) }];
    }
    default: {
      const content = named(contentOf(message.content, path), message.name);
      return content.length === 0 ? [] : [{ role: message.role === 'user' ? 'user' : 'developer', content }];
    }
  }
}

/** Reasoning comes before what followed from it. Pictures of an answer can't be sent back. */
function answerItems({ content, refusal, tool_calls: calls = [], reasoning_details: details }: AssistantMessage): InputItem[] {
  const texts = typeof content === 'string' ? [content] : (content ?? []).flatMap((item) => (item.type === 'text' ? [item.text] : []));
  const said = texts.some((text) => text !== '') ? texts : [refusal ?? ''];
  const output = said.filter((text) => text !== '').map((text) => ({ type: 'output_text' as const, text }));
  return [
    ...toReasoningItems(details),
    ...(output.length === 0 ? [] : [{ role: 'assistant' as const, content: output }]),
    ...calls.map(({ id, function: { name, arguments: text } }) => ({ type: 'function_call' as const, call_id: id, name, arguments: text || '{}' })),
  ];
}

function contentOf(content: ChatMessage['content'], path: string): InputContent[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'input_text', text: content }];
  return (content ?? []).flatMap((item, index) => inputOf(item, `${path}[${index}]`));
}

function inputOf(item: ContentItem, path: string): InputContent[] {
  switch (item.type) {
    case 'text':
      return item.text === '' ? [] : [{ type: 'input_text', text: item.text }];
    case 'image_url':
      return [{ type: 'input_image', image_url: item.image_url.url, detail: item.image_url.detail ?? 'auto' }];
    case 'input_audio':
      return [{ type: 'input_audio', input_audio: { data: item.input_audio.data, format: item.input_audio.format } }];
    case 'file':
      return [fileOf(item.file, `${path}.file`)];
    case 'input_video':
    case 'video_url':
      throw refusal(path, `items of the type ${item.type} are not supported by this provider`);
  }
}

function fileOf({ filename, file_data: data, file_id: id }: Record<string, unknown>, path: string): InputContent {
  const name = typeof filename === 'string' && filename !== '' ? { filename } : {};
  if (typeof data === 'string') return WEB_URL.test(data) ? { type: 'input_file', file_url: data } : { type: 'input_file', ...name, file_data: data };
  if (typeof id === 'string') return { type: 'input_file', file_id: id };
  throw refusal(path, 'must have file_data or file_id');
}

/** The API has no names of participants. */
function named(content: InputContent[], name: string | undefined): InputContent[] {
  const [first, ...rest] = content;
  if (name === undefined || first === undefined) return content;
  return first.type === 'input_text' ? [{ ...first, text: `${name}: ${first.text}` }, ...rest] : [{ type: 'input_text', text: `${name}:` }, ...content];
}

function refusal(param: string, words: string): SwitchyardError {
  return new SwitchyardError('router.provider_refused', `${param}: ${words}`, { details: { param } });
}
