import { namesIn } from './otel-settings.ts';
import type { Environment } from './secret-ref.ts';
import { tracingSettings } from './tracing-settings.ts';

/** A variable that is set without full effect. Its value is left out: it may be a credential. */
interface Unused {
  name: string;
  reason: string;
}

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
const OTHER_SIGNALS = /^OTEL_(?:METRICS?|LOGS|LOGRECORD|BLRP)_|^OTEL_EXPORTER_(?:PROMETHEUS|OTLP_METRICS|OTLP_LOGS)_/;

/** The OpenTelemetry variables that Switchyard ignores in whole or part. */
export function unusedOtelSettings(environment: Environment): Unused[] {
  const given = new Map(
    Object.entries(environment).flatMap(([name, value]) => (name.startsWith('OTEL_') && value !== undefined && value !== '' ? [[name, value]] : [])),
  );
  return [...given].sort().flatMap(([name = '', value = '']) => {
    const reason = Object.hasOwn(tracingSettings, name) ? reasonOf(name, value, given) : reasonOfUnread(name, value);
    return reason === null ? [] : [{ name, reason }];
  });
}

/** Null: it has its full effect. */
function reasonOf(name: string, value: string, given: ReadonlyMap<string | undefined, string | undefined>): string | null {
  const hasEndpoint = ENDPOINTS.some((endpoint) => given.has(endpoint));
  if (name === 'OTEL_PROPAGATORS') {
    const others = namesIn(value).some((one) => one !== 'tracecontext' && one !== 'baggage');
    return others ? 'only tracecontext and baggage are supported' : null;
  }
  if (name === 'OTEL_TRACES_SAMPLER_ARG') {
    const sampler = given.get('OTEL_TRACES_SAMPLER')?.trim().toLowerCase();
    return sampler === undefined || sampler.endsWith('traceidratio') ? null : 'the sampler of OTEL_TRACES_SAMPLER takes no argument';
  }
  if (name === 'OTEL_TRACES_EXPORTER') {
    return namesIn(value).includes('otlp') && !hasEndpoint
      ? 'no endpoint is set, and there is no default: only a backend of the manifest receives traces'
      : null;
  }
  if (name.startsWith('OTEL_EXPORTER_OTLP_') && !hasEndpoint) {
    return 'it applies to the collector of OTEL_EXPORTER_OTLP_ENDPOINT, which is not set, and not to a backend of the manifest';
  }
  return null;
}

function reasonOfUnread(name: string, value: string): string | null {
  if (/^OTEL_(?:METRICS|LOGS)_EXPORTER$/.test(name) && value.trim().toLowerCase() === 'none') return null;
  if (OTHER_SIGNALS.test(name)) return 'only traces are exported: metrics are scraped from /metrics, and logs are written to stderr';
  if (/^OTEL_EXPORTER_OTLP_(?:TRACES_)?INSECURE$/.test(name)) return 'the scheme of the endpoint, http or https, decides';
  return 'Switchyard does not read it';
}
