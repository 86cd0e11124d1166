// Holds an OpenAPI document, the argument, to the rules that Redocly recommends, warnings too, and
// its examples to their schemas.
import { createConfig, formatProblems, getTotals, lint } from '@redocly/openapi-core'

const config = await createConfig({
  extends: ['recommended-strict'],
  rules: {
    'no-invalid-media-type-examples': 'error',
    'no-invalid-parameter-examples': 'error',
    'no-invalid-schema-examples': 'error',
    'no-required-schema-properties-undefined': 'error',
    'path-parameters-defined': 'error',
    'operation-parameters-unique': 'error',
    'no-ambiguous-paths': 'error',
    'no-unused-components': 'off', // the schemas of a stream's events are named in words
  },
})
const problems = await lint({ ref: process.argv[2], config })
formatProblems(problems, { totals: getTotals(problems), format: 'codeframe', version: '' })
process.exit(problems.length > 0 ? 1 : 0)
