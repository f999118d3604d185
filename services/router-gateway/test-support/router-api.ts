import { API_VERSIONS } from '#shared/contracts/api-versions.ts';
import { callingKeyAnswer, generationAnswer, keyAnswer } from '#shared/contracts/router/account-answers.ts';
import { chatCompletionAnswer, embeddingsAnswer, endpointAnswer, modelAnswer, responseAnswer, routerErrorAnswer } from '#shared/contracts/router/answers.ts';
import type { PublishedApi } from '#shared/http-server/test-support/openapi-document.ts';
import { type Access, operations, refusalsOf } from '../openapi/operations.ts';

/** The router's API, by the version in its addresses. */
export const routerApi: PublishedApi<Access> = {
  title: 'Switchyard model router',
  version: API_VERSIONS.router,
  operations,
  refusalsOf,
  errorAnswer: routerErrorAnswer,
  shapes: {
    Error: routerErrorAnswer,
    ChatCompletion: chatCompletionAnswer,
    Response: responseAnswer,
    Embeddings: embeddingsAnswer,
    Model: modelAnswer,
    Endpoint: endpointAnswer,
    Key: keyAnswer,
    CallingKey: callingKeyAnswer,
    Generation: generationAnswer,
  },
  securitySchemes: { key: { type: 'http', scheme: 'bearer' }, platform: { type: 'http', scheme: 'basic' } },
  security: { call: ['key'], key: ['key'], management: ['key'], platform: ['platform'], traces: ['key', 'platform'], none: [] },
  usualAccess: 'key',
};

/** Without the second prefix, and the addresses that only refuse. Ids of models have slashes. */
export function publishedPath(url: string): string | null {
  if (url === '*' || url.startsWith('/v1/')) return null;
  return url.replace(/:(\w+)/g, '{$1}').replace('*', '{path}');
}

const paths = new Set(Object.keys(operations).map((name) => name.slice(name.indexOf(' ') + 1)));

/** The same of answers that the gateway writes: those of models are relayed unread, and scripted in tests. Routes of tests are in no table. */
export function answeredPath(url: string): string | null {
  const path = publishedPath(url.replace(/^\/v1\//, '/api/v1/'));
  const isRelayed = ['GET', 'POST'].some((method) => operations[`${method} ${path}`]?.access === 'call');
  return path === null || isRelayed || !paths.has(path) ? null : path;
}
