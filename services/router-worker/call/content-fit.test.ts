import { describe, expect, it } from 'vitest';
import { type EndpointConfig, routerConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import type { Candidate } from './candidates.ts';
import { chosenCandidates } from './test-support/chosen.ts';

/** Candidates for a model with one endpoint per provider: one, two … */
function candidates(endpoints: readonly Partial<EndpointConfig>[], request: Partial<ChatRequest>): Candidate[] {
  const slugs = ['one', 'two', 'three'].slice(0, endpoints.length);
  const config = routerConfig.parse({
    providers: slugs.map((slug) => ({ slug, kind: 'scripted' })),
    models: [{ id: 'a/m', endpoints: endpoints.map((endpoint, at) => ({ provider: slugs[at], upstream_model: 'm', ...endpoint })) }],
    keys: [{ id: 'k', key: '${KEY}' }],
  });
  return chosenCandidates(config, request);
}

const slugsOf = (list: Candidate[]) => list.map(({ provider }) => provider.slug);
const asking = (...content: object[]) => ({ messages: [{ role: 'user', content }] }) as Pick<ChatRequest, 'messages'>;

function failureIn(work: () => unknown) {
  try {
    work();
  } catch (error) {
    return failureOf(error);
  }
  throw new Error('nothing was refused');
}

const picture = { type: 'image_url', image_url: { url: 'https://a.test/a.png' } };
const recording = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };
const file = { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA' } };
const video = { type: 'video_url', video_url: { url: 'https://a.test/v.mp4' } };

describe('what a request contains', () => {
  it.each([
    ['a picture', picture, 'image'],
    ['a recording', recording, 'audio'],
    ['a file', file, 'file'],
    ['a video', video, 'video'],
    ['a video by its older name', { ...video, type: 'input_video' }, 'video'],
  ] as const)('excludes endpoints that do not take %s', (_, item, modality) => {
    const request = asking({ type: 'text', text: 'what is it?' }, item);
    expect(slugsOf(candidates([{ modalities: ['text'] }, { modalities: ['text', modality] }], request))).toEqual(['two']);
    expect(failureIn(() => candidates([{ modalities: ['text'] }], request))).toMatchObject({
      code: 'router.no_provider',
      details: { excluded_by: [{ filter: 'modality', endpoints: ['a/m@one'] }] },
    });
  });

  it('is taken by an endpoint that declares nothing, but for videos', () => {
    expect(slugsOf(candidates([{}], asking(picture, recording, file)))).toEqual(['one']);
    expect(slugsOf(candidates([{}, { modalities: ['video'] }], asking(video)))).toEqual(['two']);
  });

  it('counts in every message', () => {
    const messages = [
      { role: 'user', content: [picture] },
      { role: 'user', content: 'and now?' },
    ] as ChatRequest['messages'];
    expect(slugsOf(candidates([{ modalities: [] }, {}], { messages }))).toEqual(['two']);
  });

  it('is refused when it is a video without an address that an endpoint would get', () => {
    const request = asking({ type: 'text', text: 'a' }, { type: 'video_url' });
    expect(failureIn(() => candidates([{ modalities: ['video'] }], request))).toMatchObject({
      code: 'request.invalid',
      details: { param: 'messages[0].content[1]' },
    });
    expect(failureIn(() => candidates([{}], request))).toMatchObject({ code: 'router.no_provider' });
  });
});

describe('a format', () => {
  const grammar = { response_format: { type: 'grammar' as const, grammar: 'root ::= "yes"' } };
  const python = { response_format: { type: 'python' as const } };

  it.each([
    ['grammar', grammar],
    ['python', python],
  ] as const)('%s is sent to the endpoints that declare it, by either list', (type, request) => {
    const endpoints = [{}, { supported_parameters: [type] }, { response_formats: [type] }];
    expect(slugsOf(candidates(endpoints, request))).toEqual(['two', 'three']);
    for (const candidate of candidates(endpoints, request)) expect(candidate.request).toMatchObject(request);
  });

  it.each([
    ['grammar', grammar],
    ['python', python],
  ] as const)('%s that no endpoint declares is refused, with 503 when the request requires its parameters', (_, request) => {
    const endpoints = [{}, { supported_parameters: ['response_format'] }, { response_formats: ['json_schema' as const] }];
    expect(failureIn(() => candidates(endpoints, request))).toMatchObject({ code: 'request.invalid', details: { param: 'response_format.type' } });
    expect(failureIn(() => candidates(endpoints, { ...request, provider: { require_parameters: true } }))).toMatchObject({
      code: 'router.no_provider',
      details: { excluded_by: [{ filter: 'response_format', endpoints: ['a/m@one', 'a/m@two', 'a/m@three'] }] },
    });
  });

  it('that an endpoint does not list is left out for it, and others come first', () => {
    const request = { response_format: { type: 'json_schema' as const, json_schema: { name: 'a', schema: {} } } };
    const without = { response_formats: ['json_object' as const] };
    expect(slugsOf(candidates([without, { response_formats: ['json_schema'] }], request))).toEqual(['two']);
    expect(candidates([without], request)[0]?.request).not.toHaveProperty('response_format');
    expect(candidates([{ supported_parameters: ['structured_outputs'] }], request)[0]?.request).toMatchObject(request);
  });

  it('of text needs no support', () => {
    const request = { response_format: { type: 'text' as const }, provider: { require_parameters: true } };
    expect(slugsOf(candidates([{ supported_parameters: [] }, { response_formats: [] }], request))).toEqual(['one', 'two']);
  });
});

describe('required parameters', () => {
  const required = { provider: { require_parameters: true } };
  const none = { supported_parameters: [] };

  it('are not those that ask for what every endpoint does', () => {
    expect(slugsOf(candidates([none], { ...required, modalities: ['text'], n: 1 }))).toEqual(['one']);
    expect(failureIn(() => candidates([none], { ...required, modalities: ['text', 'image'] }))).toMatchObject({ code: 'router.no_provider' });
  });

  it('are supported under either name of reasoning', () => {
    const effort = { ...required, reasoning_effort: 'low' as const };
    expect(slugsOf(candidates([{ supported_parameters: ['reasoning'] }, { supported_parameters: ['reasoning_effort'] }, none], effort))).toEqual([
      'one',
      'two',
    ]);
  });
});
