import { describe, expect, it } from 'vitest';
import { readSettings } from './settings.ts';
import { tracingConfigOf, tracingSettings } from './tracing-settings.ts';

const read = (environment: Record<string, string>) => tracingConfigOf(readSettings(tracingSettings, environment));

describe('the settings of tracing', () => {
  it.each([
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' },
    { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'ftp://collector' },
    { OTEL_EXPORTER_OTLP_HEADERS: 'no pair' },
    { OTEL_EXPORTER_OTLP_HEADERS: 'a=%zz' },
    { OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20key%0A' },
    { OTEL_TRACES_SAMPLER_ARG: '2' },
    { TRACE_CONTENT: 'all' },
  ])('are refused by name: %j', (environment) => {
    const [name = '', value = ''] = Object.entries(environment)[0] ?? [];
    expect(() => read(environment)).toThrow(expect.objectContaining({ code: 'config.invalid', message: expect.stringContaining(name) }));
    expect(() => read(environment)).toThrow(expect.objectContaining({ message: expect.not.stringContaining(`'${value}'`) }));
  });

  it('are what OpenTelemetry calls them', () => {
    expect(read({})).toEqual({ endpoint: null, tracesEndpoint: null, headers: {}, serviceName: null, sampleRatio: 1, content: 'off' });
    const environment = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
      OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Basic%20eDp5, x-team=a=b',
      OTEL_SERVICE_NAME: 'shop',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
      TRACE_CONTENT: 'redacted',
    };
    expect(read(environment)).toEqual({
      endpoint: 'http://collector:4318',
      tracesEndpoint: null,
      headers: { authorization: 'Basic eDp5', 'x-team': 'a=b' },
      serviceName: 'shop',
      sampleRatio: 0.25,
      content: 'redacted',
    });
  });
});
