import type { z } from 'zod';
import type { RouterErrorBody, Usage } from '../contracts/router/chat-completion.ts';
import type { ChatRequest } from '../contracts/router/chat-request.ts';
import type { EmbeddingCall } from '../contracts/router/embedding-call.ts';
import type { ProviderPart } from '../contracts/router/provider-part.ts';
import type { FailureEvent } from '../contracts/router/response-object.ts';
import type { RouterMetadata } from '../contracts/router/router-metadata.ts';
import type { Answer } from './answer.ts';

/** What candidates and adapters need to know of a call, whatever API it came by. Its form is that of a chat request, which so needs no mapping. */
export type ModelRequest = ChatRequest;

/** What all events of an answer name. */
export interface EventHead {
  /** The call. */
  id: string;
  /** Epoch seconds. */
  created: number;
  model: string;
  provider: string;
  /** The event of a failure behind content, where an API has several. Absent: its usual one. */
  failures?: FailureEvent;
}

/** What an answer is written from, beside its parts. */
export interface AnswerHead extends EventHead {
  /** As the client asked. */
  request: ModelRequest;
  /** Epoch seconds, now. */
  now(): number;
}

/** What stands before and behind each text of an answer, in its event. */
export interface Template {
  prefix: string;
  suffix: string;
}

/** Writes the events of an answer. Each event ends with an empty line, and none has an `id:` field. */
export interface PartWriter {
  readonly template: Template;
  /**
   * Null unless the batch is one text that fits between prefix and suffix, as nearly all are. Called after `parts` has written content and `template` was read;
   * what it returns counts as written.
   */
  text(parts: readonly ProviderPart[]): string | null;
  /** Empty for a batch without content. */
  parts(parts: readonly ProviderPart[]): string;
  /** For `debug.echo_upstream_body`; no content. */
  debug(upstreamBody: unknown): string;
  /** @param metadata in the last event before the end mark; absent: it was not asked for */
  done(answer: Answer, usage: Usage, metadata?: RouterMetadata): string;
  /** The last events of a failed stream. Absent: the surface's `errorEvent`. @param usage null: nothing came of the call */
  failed?(body: RouterErrorBody, usage: Usage | null): string;
}

/** A plugin and its place in the request's list. */
export interface NamedPlugin {
  at: number;
  id: string;
}

/** What clients send to one API. */
export interface RequestForm<Body = unknown> {
  /** Of POST, below `/api/v1`. */
  path: string;
  /** Beside those that all routes have. Absent: none. */
  otherPrefixes?: readonly string[];
  schema: z.ZodType<Body>;
  /** The field that becomes the messages of the model request, for errors about all of them. Absent: `messages`. */
  messagesField?: string;
  /** A quick check before the schema: false for any body that the schema would change or refuse. */
  isValid(body: unknown): boolean;
  /** Most values of a body, where it may have more than the gateway's bound. */
  maxValues?: number;
  /** Fields that have no effect, of a chat beside those of its model request. Absent: there are no others. */
  ignoredNames?(body: Body): string[];
  /** Plugins that have no effect in a call for vectors. Absent: its API has no plugins, or calls are chats. */
  ignoredPlugins?(body: Body): NamedPlugin[];
  /** @throws `request.invalid` naming what has no counterpart */
  toModelRequest(body: Body): ModelRequest;
  /** What a call for vectors has beside its request. Absent: calls are chats. */
  toEmbeddingCall?(body: Body): EmbeddingCall;
}

/** How one API states requests and answers. Pure. */
export interface Surface {
  /** Null: clients have no such API. */
  request: RequestForm | null;
  /**
   * The most that texts and arguments of a streamed answer may have, in characters: attempts refuse more before any of it is published. Absent: as much as any
   * answer.
   */
  maxStreamedTextChars?: number;
  /** Made per candidate: the head names it, and its parts are added to the answer before they are written. */
  partWriter(head: AnswerHead, answer: Answer): PartWriter;
  /** JSON. With `error`: the incomplete answer before it. */
  wholeBody(answer: Answer, head: AnswerHead, usage: Usage, error?: RouterErrorBody['error']): string;
  /** The parts that an event's JSON came from, for what is left of a lost worker's answer. Absent: nothing is read back. */
  partsIn?(value: unknown): ProviderPart[];
  /** What an event, or a whole body, says of the whole answer, in the form of a completion: model, provider, usage. Absent: they have that form. */
  statedIn?(value: unknown): unknown;
  /** Whether the API states an error as an answer that was cut off for its length. Absent: it does so with none. */
  endsForLength?(error: RouterErrorBody['error']): boolean;
  /** Whether events are of this API, by their first. Absent: events do not show it. */
  hasWritten?(sse: Uint8Array): boolean;
  /** Whether events have numbers, which the gateway continues with its own. Absent: no. */
  isNumbered?: boolean;
  /** The number of events up to the first of these, and with it. Of surfaces whose events have numbers. */
  eventsUpTo?(sse: Uint8Array): number;
  /** The last events of a stream that fails. @param sequenceNumber of the first of them, where events have numbers */
  errorEvent(body: RouterErrorBody, head: EventHead, sequenceNumber: number): string;
}
