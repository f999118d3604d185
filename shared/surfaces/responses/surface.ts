import type { RouterErrorBody, Usage } from '../../contracts/router/chat-completion.ts';
import { type ResponsesRequest, responsesRequest } from '../../contracts/router/responses-request.ts';
import type { Answer } from '../answer.ts';
import type { AnswerHead, EventHead, RequestForm, Surface } from '../surface.ts';
import { endsForLength, errorFieldOf } from './error-code.ts';
import { OutputItems } from './output-items.ts';
import { END_MARKER, EventWriter, MAX_STREAMED_TEXT_CHARS } from './part-writer.ts';
import { eventsUpTo, partsInEvent, statedInEvent } from './parts-in.ts';
import { partsOf } from './parts-of.ts';
import { endingOf, responseJson, statedIn } from './response-of.ts';
import { ignoredNames, toModelRequest } from './to-model-request.ts';

const request: RequestForm<ResponsesRequest> = {
  path: '/responses',
  otherPrefixes: ['/api/alpha'],
  schema: responsesRequest,
  messagesField: 'input',
  // Input items are checked by the schema alone.
  isValid: () => false,
  ignoredNames,
  toModelRequest,
};

/** The second dialect of callers: items in place of messages, typed events in place of chunks. */
export const responses: Surface = {
  request,
  maxStreamedTextChars: MAX_STREAMED_TEXT_CHARS,
  partWriter: (head, answer) => new EventWriter(head, answer),
  wholeBody,
  partsIn: partsInEvent,
  statedIn: statedInEvent,
  endsForLength,
  hasWritten,
  isNumbered: true,
  eventsUpTo,
  errorEvent,
};

const TYPED = Buffer.from('data: {"type":"response.');

/** Behind an id, which the gateway has added. */
function hasWritten(sse: Uint8Array): boolean {
  return Buffer.from(sse.buffer, sse.byteOffset, sse.byteLength).includes(TYPED);
}

function wholeBody(answer: Answer, head: AnswerHead, usage: Usage, error?: RouterErrorBody['error']): string {
  const items = new OutputItems(head.id, null);
  for (const part of partsOf(answer)) items.add(part);
  const { status, reason } = error === undefined ? endingOf(answer) : { status: 'failed' as const, reason: null };
  items.closeAll(status === 'completed' ? status : 'incomplete');
  const { serviceTier } = answer.metadata;
  return responseJson(head, statedIn(head.request), { status, reason, output: items.list, usage, serviceTier, ...(error !== undefined && { error }) });
}

/** In both forms: clients of one throw on its `error`, those of the other read `code` and `message` beside it. */
function errorEvent({ error }: RouterErrorBody, { failures }: EventHead, sequenceNumber: number): string {
  const field = errorFieldOf(error);
  const event =
    failures === 'response.error'
      ? { type: failures, sequence_number: sequenceNumber, error: field }
      : { type: 'error', ...field, param: null, sequence_number: sequenceNumber, error_type: error.type, error: field };
  return `data: ${JSON.stringify(event)}\n\n${END_MARKER}`;
}
