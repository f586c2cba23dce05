package realtime

// How a response ends, from OpenAI's Realtime API reference (response.status).
const (
	statusCompleted  = "completed"
	statusCancelled  = "cancelled"
	statusFailed     = "failed"
	statusIncomplete = "incomplete"
)
