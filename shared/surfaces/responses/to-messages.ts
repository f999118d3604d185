import type { ChatMessage } from '../../contracts/router/chat-request.ts';
import type { InputItem, InputMessage, InputPart } from '../../contracts/router/responses-input.ts';
import { type ResponsesRequest, STATELESS } from '../../contracts/router/responses-request.ts';
import { AnswerBefore } from './answer-before.ts';
import { invalid } from './invalid.ts';

type Content = Exclude<Extract<ChatMessage, { role: 'user' }>['content'], string>;
type TextContent = Exclude<Extract<ChatMessage, { role: 'system' }>['content'], string>;

/**
 * The conversation as messages of a chat. A first message of the role `system` is that of `instructions`: the same role of an input item in that place becomes
 * `developer`, which models read alike (`instructionsIn`).
 *
 * @throws `request.invalid` naming a part that has no form there, and for items that are stored nowhere
 */
export function toMessages({ instructions, input }: Pick<ResponsesRequest, 'instructions' | 'input'>): ChatMessage[] {
  const messages: ChatMessage[] = instructions ? [{ role: 'system', content: instructions }] : [];
  if (typeof input === 'string') return [...messages, { role: 'user', content: input }];
  const before = new AnswerBefore();
  for (const [index, item] of input.entries()) {
    const path = `input[${index}]`;
    if (before.add(item, messages)) continue;
    before.flush(messages);
    const message = messageOf(item, path, messages.length === 0);
    if (message !== null) messages.push(message);
  }
  before.flush(messages);
  if (messages.length === 0) throw invalid('input', 'has nothing that a model could answer');
  return messages;
}

/** Null: the request had none. */
export function instructionsIn([first]: readonly ChatMessage[]): string | null {
  return first?.role === 'system' && typeof first.content === 'string' ? first.content : null;
}

/** Null for items that models are not sent. */
function messageOf(item: InputItem, path: string, isFirst: boolean): ChatMessage | null {
  if ('role' in item && item.role !== undefined) return chatMessageOf(item as InputMessage, path, isFirst);
  switch (item.type) {
    case 'function_call_output': {
      const { call_id: id, output } = item as Extract<InputItem, { output: unknown }>;
      return { role: 'tool', tool_call_id: id, content: typeof output === 'string' ? output : contentOf(output, `${path}.output`) };
    }
    case 'item_reference':
      throw invalid(path, STATELESS);
    default:
      return null;
  }
}

function chatMessageOf({ role, content }: InputMessage, path: string, isFirst: boolean): ChatMessage {
  if (role === 'user') return { role, content: typeof content === 'string' ? content : contentOf(content, `${path}.content`) };
  const instructing = role === 'system' && !isFirst ? 'system' : 'developer';
  return { role: instructing, content: typeof content === 'string' ? content : textsOf(content, `${path}.content`) };
}

function textsOf(parts: readonly InputPart[], path: string): TextContent {
  return parts.map((part, index) => {
    if ('text' in part) return { type: 'text', text: part.text as string };
    throw invalid(`${path}[${index}]`, `must be a text: the role takes no ${part.type}`);
  });
}

function contentOf(parts: readonly InputPart[], path: string): Content {
  return parts.map((part, index) => itemOf(part, `${path}[${index}]`));
}

function itemOf(part: InputPart, path: string): Content[number] {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { type: 'text', text: part.text };
    case 'refusal':
      return { type: 'text', text: part.refusal };
    case 'input_image':
      if (typeof part.image_url !== 'string') throw invalid(`${path}.image_url`, 'is required: files are not stored');
      return { type: 'image_url', image_url: { url: part.image_url, ...(part.detail && { detail: part.detail }) } };
    case 'input_file':
      return { type: 'file', file: fileOf(part, path) };
    case 'input_audio': {
      const { data, format } = part.input_audio;
      return { type: 'input_audio', input_audio: { data, format } };
    }
    case 'input_video':
      return { type: 'video_url', video_url: { url: part.video_url } };
  }
}

/** An address stands where the data does, as in chats. */
function fileOf({ filename, file_data: data, file_url: url, file_id: id }: Extract<InputPart, { type: 'input_file' }>, path: string) {
  const content = data ?? url;
  if (typeof content !== 'string' && typeof id !== 'string') throw invalid(path, 'must have file_data, file_url or file_id');
  return {
    ...(typeof filename === 'string' && { filename }),
    ...(typeof content === 'string' && { file_data: content }),
    ...(typeof id === 'string' && { file_id: id }),
  };
}
