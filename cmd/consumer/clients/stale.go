package clients

import (
	"github.com/standings/standings/internal/ledger/workers"
)

// StaleAfter is how old a worker's line is of whom nothing is heard any more: three of its lines.
const StaleAfter = workers.StaleAfter
