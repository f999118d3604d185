import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { EncodedSpans } from './encoded-spans.ts';
import type { BatchExporter } from './span-batches.ts';

/** An exporter, and the form in which it takes spans. */
export type OpenedExporter = { form: 'encoded'; exporter: BatchExporter<EncodedSpans> } | { form: 'readable'; exporter: SpanExporter };
