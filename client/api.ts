import type { components, paths } from './openapi.ts';

type Schemas = components['schemas'];

/** A conversation event. `kind` may be one that this version does not know: consumers ignore those. */
export type AgentEvent = Schemas['Event'];
export type Session = Schemas['Session'];
export type Run = Schemas['Run'];

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The paths that have an operation of this method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: Lowercase<M> extends keyof paths[P] ? (paths[P][Lowercase<M>] extends { responses: unknown } ? P : never) : never;
}[keyof paths];

type OperationOf<M extends Method, P extends PathOf<M>> = Lowercase<M> extends keyof paths[P] ? NonNullable<paths[P][Lowercase<M>]> : never;

type Successful = 200 | 201 | 202 | 204;
type JsonOf<Answer> = Answer extends { content: infer Content } ? ('application/json' extends keyof Content ? Content['application/json'] : string) : null;

/** What a successful request resolves to: the JSON of the body, its text where it is no JSON, null without a body. */
export type ResultOf<M extends Method, P extends PathOf<M>> =
  OperationOf<M, P> extends { responses: infer Answers } ? { [S in keyof Answers & Successful]: JsonOf<Answers[S]> }[keyof Answers & Successful] : never;

/** Numbers and booleans in a query are written as text. */
type Written<Q> = { [Name in keyof Q]: Q[Name] | (string extends NonNullable<Q[Name]> ? number | boolean : never) };

type PathParameters<O> = O extends { parameters: { path: infer Values } } ? { path: Values } : { path?: undefined };
type QueryParameters<O> = O extends { parameters: { query: infer Values extends object } }
  ? { query: Written<Values> }
  : O extends { parameters: { query?: infer Values } }
    ? { query?: Written<NonNullable<Values>> }
    : { query?: undefined };
type JsonBody<O> = O extends { requestBody: { content: { 'application/json': infer Body } } }
  ? { body: Body }
  : O extends { requestBody?: { content: { 'application/json': infer Body } } }
    ? { body?: Body }
    : { body?: undefined };

export interface RequestOptions {
  signal?: AbortSignal | undefined;
  /** Sent as `Idempotency-Key`; the request is then repeated while its failure is transient. */
  idempotencyKey?: string | undefined;
}

export type InputOf<M extends Method, P extends PathOf<M>> = PathParameters<OperationOf<M, P>> &
  QueryParameters<OperationOf<M, P>> &
  JsonBody<OperationOf<M, P>> &
  RequestOptions;

export type QueryOf<M extends Method, P extends PathOf<M>> = NonNullable<InputOf<M, P>['query']>;
export type BodyOf<M extends Method, P extends PathOf<M>> = NonNullable<InputOf<M, P>['body']>;
