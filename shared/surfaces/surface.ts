import type { z } from 'zod';
import type { RouterErrorBody, Usage } from '../contracts/router/chat-completion.ts';
import type { ChatRequest } from '../contracts/router/chat-request.ts';
import type { EmbeddingCall } from '../contracts/router/embedding-call.ts';
import type { ProviderPart } from '../contracts/router/provider-part.ts';
import type { Answer } from './answer.ts';

/** What candidates and adapters need to know of a call, whatever API it came by. Its form is that of a chat request, which so needs no mapping. */
export type ModelRequest = ChatRequest;

/** What all events of an answer name. */
export interface AnswerHead {
  /** The call. */
  id: string;
  /** Epoch seconds. */
  created: number;
  model: string;
  provider: string;
}

/** What stands before and behind each text of an answer, in its event. */
export interface Template {
  prefix: string;
  suffix: string;
}

/** Writes the events of an answer. Each event ends with an empty line, and none has an `id:` field. */
export interface PartWriter {
  readonly template: Template;
  /** Null unless the batch is one text that fits between prefix and suffix, as nearly all are. Called after `parts` has written content. */
  text(parts: readonly ProviderPart[]): string | null;
  /** Empty for a batch without content. */
  parts(parts: readonly ProviderPart[]): string;
  /** For `debug.echo_upstream_body`; no content. */
  debug(upstreamBody: unknown): string;
  done(answer: Answer, usage: Usage): string;
}

/** What clients send to one API. */
export interface RequestForm<Body = unknown> {
  /** Of POST, below `/api/v1`. */
  path: string;
  schema: z.ZodType<Body>;
  /** A quick check before the schema: false for any body that the schema would change or refuse. */
  isValid(body: unknown): boolean;
  /** Most values of a body, where it may have more than the gateway's bound. */
  maxValues?: number;
  /** Fields that have no effect. Absent: the gateway's rules for those of a chat say it. */
  ignoredNames?(body: Body): string[];
  toModelRequest(body: Body): ModelRequest;
  /** What a call for vectors has beside its request. Absent: calls are chats. */
  toEmbeddingCall?(body: Body): EmbeddingCall;
}

/** How one API states requests and answers. Pure. */
export interface Surface {
  /** Null: clients have no such API. */
  request: RequestForm | null;
  /** Made per candidate: the head names it, and its parts are added to the answer before they are written. */
  partWriter(head: AnswerHead, answer: Answer): PartWriter;
  /** JSON. With `error`: the incomplete answer before it. */
  wholeBody(answer: Answer, head: AnswerHead, usage: Usage, error?: RouterErrorBody['error']): string;
  /** The parts that an event's JSON came from, for what is left of a lost worker's answer. Absent: nothing is read back. */
  partsIn?(value: unknown): ProviderPart[];
  /** The last event of a failed stream. */
  errorEvent(body: RouterErrorBody, head: AnswerHead): string;
}
