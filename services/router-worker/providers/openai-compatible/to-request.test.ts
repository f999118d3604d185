import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { adaptParameters } from './adapt-parameters.ts';
import type { Extension } from './extensions.ts';
import { PROFILES } from './profiles.ts';
import { type ParameterCompatibility, toRequest } from './to-request.ts';

const plain: ParameterCompatibility = { maxTokensField: 'max_tokens', refused: new Set() };
const hello: ChatRequest = { messages: [{ role: 'user', content: 'hi' }] };
const bodyOf = (request: Partial<ChatRequest>, compatibility = plain, extensions: readonly Extension[] = []) =>
  toRequest({ model: 'upstream-model', request: { ...hello, ...request } }, compatibility, {
    slug: 'east',
    form: { ...PROFILES.generic, extensions: new Set(extensions) },
  });

describe('the request to an OpenAI-compatible upstream', () => {
  it('drops what only the router reads, and forwards unknown fields', () => {
    const ours = {
      models: ['a/b'],
      provider: { order: ['x'] },
      plugins: [{ id: 'web' }],
      route: 'fallback' as const,
      session_id: 's',
      debug: { echo_upstream_body: true },
      metadata: { a: 'b' },
      n: 2,
    };
    expect(bodyOf({ ...ours, model: 'a/b', top_k: 7, vendor_thing: { x: 1 }, temperature: 0 })).toEqual({
      model: 'upstream-model',
      messages: [{ role: 'user', content: 'hi' }],
      stream: true,
      stream_options: { include_usage: true },
      top_k: 7,
      vendor_thing: { x: 1 },
      temperature: 0,
    });
  });

  it('streams and requests usage, whatever the client sent', () => {
    expect(bodyOf({ stream: false, stream_options: { include_usage: false, other: 1 } })).toMatchObject({
      stream: true,
      stream_options: { include_usage: true, other: 1 },
    });
  });

  it('sends no nulls, except for the content of an assistant that only calls tools', () => {
    const toolCalls = [{ id: 'a', type: 'function' as const, function: { name: 'f', arguments: '{}' } }];
    const body = bodyOf({ temperature: null, stop: null, messages: [{ role: 'assistant', tool_calls: toolCalls, refusal: null, reasoning: 'mine' }] });
    expect(body).not.toHaveProperty('temperature');
    expect(body).not.toHaveProperty('stop');
    expect(body.messages).toEqual([{ role: 'assistant', content: null, tool_calls: toolCalls }]);
  });

  it('renames developer to system, and strips cache marks from texts and tools', () => {
    const mark = { cache_control: { type: 'ephemeral' as const } };
    const body = bodyOf({
      messages: [{ role: 'developer', content: [{ type: 'text', text: 'be kind', ...mark }] }],
      tools: [{ type: 'function', function: { name: 'f' }, ...mark }],
    });
    expect(body.messages).toEqual([{ role: 'system', content: [{ type: 'text', text: 'be kind' }] }]);
    expect(body.tools).toEqual([{ type: 'function', function: { name: 'f' } }]);
  });

  it('names the token limit as the upstream does, and prefers max_completion_tokens when both are given', () => {
    expect(bodyOf({ max_tokens: 5, max_completion_tokens: 7 })).toMatchObject({ max_tokens: 7 });
    const body = bodyOf({ max_tokens: 5 }, { ...plain, maxTokensField: 'max_completion_tokens' });
    expect(body).toMatchObject({ max_completion_tokens: 5 });
    expect(body).not.toHaveProperty('max_tokens');
  });

  it.each([
    [{ effort: 'high' as const }, 'high'],
    [{ enabled: true }, 'medium'],
    [{ enabled: false }, 'none'],
    [{ max_tokens: 200 }, 'low'],
    [{ summary: 'auto' as const }, undefined],
  ])('maps reasoning %o to the effort %s', (reasoning, effort) => {
    const body = bodyOf({ reasoning, max_tokens: 1_000 });
    expect(body.reasoning_effort).toBe(effort);
    expect(body).not.toHaveProperty('reasoning');
  });
});

describe('what few servers of the API have', () => {
  const mark = { cache_control: { type: 'ephemeral' as const, ttl: '1h' as const } };
  const details = [{ type: 'reasoning.text', text: 'hm', signature: 'sig', index: 0, format: 'anthropic-claude-v1' }];
  const before: ChatRequest['messages'][number] = {
    role: 'assistant',
    content: 'Well',
    reasoning: 'hm',
    reasoning_details: details,
    images: [],
    annotations: [],
  };
  const plainBefore = { role: 'assistant', content: 'Well' };

  it('is the reasoning object, which then has all that the request says of it but the exclusion', () => {
    const asked = { reasoning: { summary: 'detailed' as const, max_tokens: 2_000, exclude: true } };
    expect(bodyOf(asked, plain, ['reasoning'])).toMatchObject({ reasoning: { summary: 'detailed', max_tokens: 2_000 } });
    expect(bodyOf(asked, plain, ['reasoning'])).not.toHaveProperty('reasoning.exclude');
    expect(bodyOf(asked)).not.toHaveProperty('reasoning');
    const effort = bodyOf({ reasoning_effort: 'max' }, plain, ['reasoning']);
    expect(effort).toMatchObject({ reasoning: { effort: 'max' } });
    expect(effort).not.toHaveProperty('reasoning_effort');
    expect(bodyOf({ reasoning_effort: 'max' })).toMatchObject({ reasoning_effort: 'max' });
    expect(bodyOf({ include_reasoning: true }, plain, ['reasoning'])).toMatchObject({ reasoning: {} });
    expect(bodyOf({ include_reasoning: false }, plain, ['reasoning'])).not.toHaveProperty('reasoning');
  });

  it('is marks for caches: on texts, on tools and at the top', () => {
    const text = { type: 'text' as const, text: 'long', ...mark };
    const tool = { type: 'function' as const, function: { name: 'f' }, ...mark };
    const asked: Partial<ChatRequest> = { ...mark, messages: [{ role: 'user', content: [text] }], tools: [tool] };
    expect(bodyOf(asked, plain, ['cache_control'])).toMatchObject({ ...mark, messages: [{ content: [text] }], tools: [tool] });
    expect(JSON.stringify(bodyOf(asked))).not.toContain('cache_control');
  });

  it.each<[Extension[], object]>([
    [[], plainBefore],
    [['reasoning_content'], { ...plainBefore, reasoning_content: 'hm' }],
    [['reasoning_details'], { ...plainBefore, reasoning: 'hm', reasoning_details: details }],
  ])('is reasoning that is sent back, by %j', (extensions, expected) => {
    expect(bodyOf({ messages: [before] }, plain, extensions).messages).toEqual([expected]);
  });

  it('takes reasoning by either name', () => {
    const named: ChatRequest['messages'][number] = { role: 'assistant', content: 'Well', reasoning_content: 'hm' };
    expect(bodyOf({ messages: [named] }, plain, ['reasoning_content']).messages).toEqual([{ ...plainBefore, reasoning_content: 'hm' }]);
  });

  it('takes the texts of reasoning that comes back in its details alone', () => {
    const details = [
      { type: 'reasoning.text', text: 'let me ' },
      { type: 'reasoning.encrypted', data: 'x' },
      { type: 'reasoning.text', text: 'see' },
      { type: 'odd' },
    ];
    const messages: ChatRequest['messages'] = [{ role: 'assistant', content: 'Well', reasoning_details: details }];
    expect(bodyOf({ messages }, plain, ['reasoning_content']).messages).toEqual([{ ...plainBefore, reasoning_content: 'let me see' }]);
  });
});

describe('what has two forms', () => {
  it('is a video, whose older name is changed', () => {
    const video_url = { url: 'https://a.test/v.mp4' };
    const content = [
      { type: 'input_video' as const, video_url },
      { type: 'video_url' as const, video_url },
    ];
    expect(bodyOf({ messages: [{ role: 'user', content }] }).messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'video_url', video_url },
          { type: 'video_url', video_url },
        ],
      },
    ]);
  });

  it('is sound of an earlier answer, of which the upstream gets the id', () => {
    const sound = { role: 'assistant' as const, content: null, audio: { id: 'audio_1', data: 'AAAA', transcript: 'hi' } };
    expect(bodyOf({ messages: [sound, { ...sound, audio: {} }] }).messages).toEqual([
      { role: 'assistant', content: null, audio: { id: 'audio_1' } },
      { role: 'assistant', content: null },
    ]);
  });
});

describe('options of one provider', () => {
  it('reach that provider alone, and change nothing that the router decides', () => {
    const provider_options = { east: { store: false, model: 'dear', messages: [], stream: false, max_tokens: 9, n: 2 }, west: { other: 1 } };
    expect(bodyOf({ provider_options, max_tokens: 5 })).toEqual({ ...bodyOf({ max_tokens: 5 }), store: false });
    expect(bodyOf({ provider_options: { west: { other: 1 } } })).toEqual(bodyOf({}));
  });
});

describe('parameter compatibility after a refusal', () => {
  const refusal = (error: object) => JSON.stringify({ error });

  it('is unchanged by a refusal for another reason', () => {
    const body = bodyOf({ temperature: 3 });
    expect(
      adaptParameters(refusal({ message: "Invalid 'temperature': must be at most 2", param: 'temperature', code: 'invalid_value' }), body, plain),
    ).toBeNull();
    expect(adaptParameters('<html>Bad Request</html>', body, plain)).toBeNull();
  });

  it('is unchanged when an essential parameter is refused', () => {
    const message = 'tools is not supported with this model';
    expect(adaptParameters(refusal({ message, param: 'tools', code: 'unsupported_parameter' }), bodyOf({ tools: [] }), plain)).toBeNull();
  });

  it('uses the other name of the token limit, and none when both are refused', () => {
    const message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    const adapted = adaptParameters(refusal({ message, param: 'max_tokens', code: 'unsupported_parameter' }), bodyOf({ max_tokens: 5 }), plain);
    expect(adapted).toEqual({ maxTokensField: 'max_completion_tokens', refused: new Set(['max_tokens']) });
    const again = bodyOf({ max_tokens: 5 }, adapted ?? plain);
    const second = adaptParameters(
      refusal({ message: 'Unrecognized request argument: max_completion_tokens', param: 'max_completion_tokens' }),
      again,
      adapted ?? plain,
    );
    expect(bodyOf({ max_tokens: 5 }, second ?? plain)).toEqual(bodyOf({}));
  });

  it('leaves out a parameter whose value the model does not support', () => {
    const message = "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.";
    const adapted = adaptParameters(refusal({ message, param: 'temperature', code: 'unsupported_value' }), bodyOf({ temperature: 0.2 }), plain);
    expect(bodyOf({ temperature: 0.2 }, adapted ?? plain)).toEqual(bodyOf({}));
  });

  it('finds the parameter in the words of xAI, which does not quote it', () => {
    const text = JSON.stringify({ code: 'Client specified an invalid argument', error: 'Argument not supported on this model: presencePenalty' });
    expect(adaptParameters(text, bodyOf({ presence_penalty: 1 }), plain)?.refused).toEqual(new Set(['presence_penalty']));
    expect(adaptParameters(text.replace('presencePenalty', 'stop'), bodyOf({ stop: ['a'] }), plain)).toBeNull();
  });

  it('finds the parameter in the error lists of servers that validate field by field', () => {
    const text = JSON.stringify({ detail: [{ type: 'extra_forbidden', loc: ['body', 'seed'], msg: 'Extra inputs are not permitted', input: 7 }] });
    expect(adaptParameters(text, bodyOf({ seed: 7 }), plain)?.refused).toEqual(new Set(['seed']));
  });
});
