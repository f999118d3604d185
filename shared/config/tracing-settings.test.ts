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
    { OTEL_SDK_DISABLED: 'yes' },
    { OTEL_LOG_LEVEL: 'loud' },
    { OTEL_PROPAGATORS: 'b3' },
    { OTEL_PROPAGATORS: 'none' },
    { OTEL_RESOURCE_ATTRIBUTES: 'team' },
    { OTEL_TRACES_EXPORTER: 'zipkin' },
    { OTEL_TRACES_EXPORTER: 'otlp,none' },
    { OTEL_TRACES_SAMPLER: 'jaeger_remote' },
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'thrift' },
    { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http' },
    { OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'no pair' },
    { OTEL_EXPORTER_OTLP_TIMEOUT: '0' },
    { OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '10s' },
    { OTEL_EXPORTER_OTLP_COMPRESSION: 'zstd' },
    { OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'br' },
    { OTEL_BSP_SCHEDULE_DELAY: '0' },
    { OTEL_BSP_EXPORT_TIMEOUT: '0' },
    { OTEL_BSP_MAX_QUEUE_SIZE: '1000000' },
    { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '-1' },
    { OTEL_ATTRIBUTE_COUNT_LIMIT: '-1' },
    { OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: '1.5' },
    { OTEL_SPAN_EVENT_COUNT_LIMIT: 'all' },
    { TRACE_CONTENT: 'all' },
  ])('are refused by name: %j', (environment) => {
    const [name = '', value = ''] = Object.entries(environment)[0] ?? [];
    expect(() => read(environment)).toThrow(expect.objectContaining({ code: 'config.invalid', message: expect.stringContaining(name) }));
    expect(() => read(environment)).toThrow(expect.objectContaining({ message: expect.not.stringContaining(`'${value}'`) }));
  });

  it('are what OpenTelemetry calls them', () => {
    expect(read({})).toMatchObject({ endpoint: null, tracesEndpoint: null, headers: {}, serviceName: null, sampleRatio: 1, content: 'off' });
    const environment = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
      OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Basic%20eDp5, x-team=a=b',
      OTEL_SERVICE_NAME: 'shop',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
      TRACE_CONTENT: 'redacted',
    };
    expect(read(environment)).toMatchObject({
      endpoint: 'http://collector:4318',
      tracesEndpoint: null,
      headers: { authorization: 'Basic eDp5', 'x-team': 'a=b' },
      serviceName: 'shop',
      sampleRatio: 0.25,
      content: 'redacted',
    });
  });
});
