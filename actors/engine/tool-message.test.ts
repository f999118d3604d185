import { describe, expect, it } from 'vitest';
import { refusalMessage, toolMessage } from './tool-message.ts';

describe('toolMessage', () => {
  it.each(['outcome_unknown', 'timeout', 'refused', 'unreachable', 'auth_failed'] as const)(
    'reports to the model and the log that a call ended as %s',
    (reason) => {
      const message = toolMessage('c1', { type: 'failed', reason, message: 'as its worker says' });

      expect(message).toMatchObject({ role: 'tool', tool_call_id: 'c1', result: { data: { error: reason }, metadata: { error: 'as its worker says' } } });
      expect(JSON.parse(message.content)).toMatchObject({ error: reason, message: expect.any(String) });
    },
  );

  it('shows the model why its call failed only if it was refused', () => {
    expect(toolMessage('c1', { type: 'failed', reason: 'refused', message: '/sku must be string' }).content).toContain('/sku must be string');
    expect(toolMessage('c1', { type: 'failed', reason: 'timeout', message: 'connect 10.0.0.7:443' }).content).not.toContain('10.0.0.7');
  });

  it('marks a result that the tool reports as an error', () => {
    const message = toolMessage('c1', { type: 'result', data: { code: 7 }, metadata: { took: 1 }, isError: true });

    expect(message.content).toBe('{"error":"tool_failed","result":{"code":7}}');
    expect(message.result).toEqual({ data: { code: 7 }, metadata: { took: 1, error: 'the tool says that it failed' } });
  });

  it('truncates a long result for the model, never within a character', () => {
    const { content, result } = toolMessage('c1', { type: 'result', data: `x${'😀'.repeat(70_000)}`, metadata: {}, isError: false });

    expect(content.length).toBeLessThan(131_200);
    expect(content).toMatch(/😀\n\[cut off: 8929 more characters\]$/u);
    expect(content).not.toMatch(/\p{Cs}/u);
    expect(result?.data).toHaveLength(140_001);
  });

  it('cleans the model’s copy and leaves the log’s unchanged', () => {
    const message = toolMessage('c1', { type: 'result', data: 'done\u202e\u0007', metadata: {}, isError: false });

    expect(message.content).toBe('done');
    expect(message.result?.data).toBe('done\u202e\u0007');
  });

  it('reads a result without data as null', () => {
    expect(toolMessage('c1', { type: 'result', data: undefined, metadata: {}, isError: false })).toMatchObject({ content: 'null', result: { data: null } });
  });
});

describe('refusalMessage', () => {
  it('has nothing for the log', () => {
    expect(refusalMessage('c1', 'unknown_function', 'There is no such function.')).toEqual({
      role: 'tool',
      tool_call_id: 'c1',
      content: '{"error":"unknown_function","message":"There is no such function."}',
      result: null,
    });
  });
});
