import { describe, expect, it } from 'vitest';
import { settingsOf } from './setting-table.ts';
import { readSettings } from './settings.ts';

const settings = { ...settingsOf('agent-gateway'), ...settingsOf('actor-host') };
const read = (name: keyof typeof settings, value: string) => readSettings({ [name]: settings[name] }, { [name]: value })[name];

describe('a setting', () => {
  it.each<[keyof typeof settings, string]>([
    ['NATS_URL', 'http://hunter2.example:4222'],
    ['NATS_URL', 'hunter2:4222'],
    ['NATS_URL', 'nats://hunter2:secret@127.0.0.1:4222'],
    ['NATS_URL', 'nats://127.0.0.1:4222,,hunter2'],
    ['NATS_URL', Array(33).fill('nats://hunter2:4222').join(',')],
    ['DATABASE_URL', 'mysql://hunter2@127.0.0.1/agents'],
    ['REDIS_URL', 'hunter2'],
    ['MANAGEMENT_PORT', '65536'],
    ['HOUSE_SECRET', 'hunter2'],
    ['SHUTDOWN_DRAIN_TIMEOUT_SECONDS', '0'],
    ['STREAMING', 'hunter2'],
    ['LOG_LEVEL', 'hunter2'],
    ['LOG_FORMAT', 'hunter2'],
    ['AUTONOMOUS_CALLBACK_MAX_RETRIES', '0'],
    ['STORE_GC_DELAY_SECONDS', '0'],
    ['RUN_RETENTION_DAYS', '0'],
    ['RUN_RETENTION_DAYS', '3651'],
    ['PUBLIC_BASE_URL', 'ftp://hunter2.example'],
    ['LLM_PROVIDER_ORDER', 'openai,,hunter2'],
    ['LLM_PROVIDER_ORDER', 'openai, hunter2 and others'],
    ['LLM_PROVIDER_ORDER', Array(257).fill('hunter2').join(',')],
    ['LLM_PROVIDER_ORDER', 'hunter2'.repeat(20)],
  ])('%s is refused by its name, without its value: %s', (name, value) => {
    expect(() => read(name, value)).toThrow(name);
    expect(() => read(name, value)).not.toThrow('hunter2');
  });

  it.each<[keyof typeof settings, string, string]>([
    ['PUBLIC_BASE_URL', 'localhost:11434', 'must be a URL that starts with http:// or https://'],
    ['DATABASE_URL', 'mysql://127.0.0.1/agents', 'must be a URL that starts with postgres:// or postgresql://'],
    ['REDIS_URL', '127.0.0.1:6379', 'must be a URL that starts with redis:// or rediss://'],
  ])('%s names the schemes that it takes: %s', (name, value, sentence) => {
    expect(() => read(name, value)).toThrow(`${name}: ${sentence}`);
  });

  it('that is empty counts as not given', () => {
    expect(() => read('NATS_URL', '')).toThrow('NATS_URL: is missing');
    expect(read('DATABASE_URL', '')).toBeUndefined();
    expect(read('COALESCE_MS', '')).toBe(150);
  });

  it.each<[keyof typeof settings, string, unknown]>([
    ['NATS_URL', 'nats://one:4222, tls://two:4222', 'nats://one:4222, tls://two:4222'],
    ['DATABASE_URL', 'postgresql://anna:secret@[::1]/agents?sslmode=require', 'postgresql://anna:secret@[::1]/agents?sslmode=require'],
    ['REDIS_URL', 'rediss://127.0.0.1:6380/2', 'rediss://127.0.0.1:6380/2'],
    ['STREAMING', 'False', false],
    ['LOG_LEVEL', 'Warning', 'Warning'],
    ['LOG_FORMAT', 'JSON', 'JSON'],
    ['MANAGEMENT_PORT', '0', 0],
    ['LLM_PROVIDER_ORDER', 'openai, deepinfra/turbo', ['openai', 'deepinfra/turbo']],
  ])('%s may be %s', (name, value, expected) => {
    expect(read(name, value)).toEqual(expected);
  });

  it('that is wrong is reported together with all others', () => {
    const shape = { NATS_URL: settings.NATS_URL, HOUSE_SECRET: settings.HOUSE_SECRET, COALESCE_MS: settings.COALESCE_MS, LOG_LEVEL: settings.LOG_LEVEL };
    const wrong = { COALESCE_MS: 'soon', LOG_LEVEL: 'loud' };

    expect(() => readSettings(shape, wrong)).toThrow(/4 errors:\n {2}NATS_URL: .*\n {2}HOUSE_SECRET: .*\n {2}COALESCE_MS: .*\n {2}LOG_LEVEL: /);
  });
});
